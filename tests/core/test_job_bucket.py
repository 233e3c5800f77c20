"""The jobs in S3: concurrent submissions, states derived from the nodes' files, checkpoints and logs."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.core.aws_stubs import REGION, create_bucket
from tests.core.job_bucket import BUCKET, JOB, NOON, FollowedStore, NodesOfAJob, job_bucket
from tests.nasty_names import NASTY_NAMES
from tests.retry_cases import RETRY_CASES, RETRY_SETTINGS
from trainium_core.jobs import aws_job_store
from trainium_core.jobs.aws_job_store import JobStore
from trainium_core.jobs.follow import (
    UNANSWERED,
    JobFollower,
    LogLine,
)
from trainium_core.jobs.problems import JobError
from trainium_core.jobs.progress import JobState
from trainium_runtime.aws_service import Clients
from trainium_runtime.errors import RequestRefusedError, UnavailableError
from trainium_wire.formats import moment
from trainium_wire.job_progress import attempt_state

pytestmark = pytest.mark.usefixtures("made_up_credentials")

OTHER = replace(JOB, id="other-20261122-130000")


@pytest.fixture
def bucket() -> Iterator[tuple[JobStore, NodesOfAJob]]:
    with job_bucket() as both:
        yield both


@pytest.fixture
def jobs(bucket: tuple[JobStore, NodesOfAJob]) -> JobStore:
    return bucket[0]


@pytest.fixture
def nodes(bucket: tuple[JobStore, NodesOfAJob]) -> NodesOfAJob:
    assert bucket[0].submit(JOB, b"source", over=None)
    return bucket[1]


def status(jobs: JobStore) -> str:
    state = jobs.state(JOB.id)
    assert state
    return state.status


@pytest.mark.usefixtures("nodes")
def test_one_of_two_concurrent_submissions_is_refused(jobs: JobStore) -> None:
    assert not jobs.submit(OTHER, b"", over=None)
    before = jobs.current()
    assert jobs.submit(replace(OTHER, id="third"), b"", over=before)
    assert not jobs.submit(replace(OTHER, id="fourth"), b"", over=before)


@pytest.mark.usefixtures("nodes")
def test_used_id_is_refused(jobs: JobStore) -> None:
    with pytest.raises(
        RequestRefusedError, match=f"the job {JOB.id} already exists: try again, or specify another name"
    ):
        jobs.submit(JOB, b"other", over=jobs.current())


def test_local_inputs_are_uploaded_without_secrets(jobs: JobStore, tmp_path: Path) -> None:
    for name in ("a.txt", "deep/b.txt", ".env"):
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).write_text(name)
    uploads = {"folder": tmp_path / "data", "file": tmp_path / "data/a.txt"}
    assert jobs.submit(JOB, b"", over=None, uploads=uploads)
    sizes = {"inputs/file": 5, "inputs/folder/a.txt": 5, "inputs/folder/deep/b.txt": 10}
    assert jobs.files(JOB.id, "inputs") == sizes
    assert jobs.files(JOB.id, "inputs/fol") == {}


def test_names_of_local_inputs_are_kept_or_refused(jobs: JobStore, tmp_path: Path) -> None:
    for name in NASTY_NAMES:
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).write_bytes(name.encode())
    assert jobs.submit(JOB, b"", over=None, uploads={"folder": tmp_path / "data"})
    assert set(jobs.files(JOB.id, "inputs")) == {f"inputs/folder/{name}" for name in NASTY_NAMES}
    for name in NASTY_NAMES:
        jobs.download(JOB.id, f"inputs/folder/{name}", str(tmp_path / "copy"))
        assert (tmp_path / "copy").read_bytes() == name.encode()
    (tmp_path / "data" / os.fsdecode(b"bad\xff")).touch()
    with pytest.raises(JobError) as refused:
        jobs.submit(replace(JOB, id="other"), b"", over=None, uploads={"folder": tmp_path / "data"})
    (problem,) = refused.value.problems
    assert (problem.got, problem.allowed) == (rf"{tmp_path}/data/bad\xff", "files whose names are UTF-8")


@pytest.mark.parametrize(("owner", "function", "name"), [(os, "scandir", "data"), (Path, "open", "data/a.txt")])
def test_unreadable_local_input_is_refused_by_its_option(
    jobs: JobStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, function: str, name: str
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a.txt").write_text("a")
    original = getattr(owner, function)

    def refuse(path: Any, *arguments: Any) -> Any:
        if Path(path) == tmp_path / name:
            raise PermissionError(13, "Permission denied", str(path))
        return original(path, *arguments)

    monkeypatch.setattr(owner, function, refuse)
    with pytest.raises(JobError) as refused:
        jobs.submit(JOB, b"", over=None, uploads={"folder": tmp_path / "data"})
    (problem,) = refused.value.problems
    assert (problem.key, problem.got) == ("--input", str(tmp_path / name))


def test_resumed_job_without_checkpoints_has_those_of_its_origin(jobs: JobStore, nodes: NodesOfAJob) -> None:
    nodes.put("checkpoints/step-7.json", {"world_size": 4})
    second, third = (replace(JOB, id=name, resume_from=earlier) for name, earlier in (("b", JOB.id), ("c", "b")))
    for job in (second, third):
        replace(nodes, job=job).put("job.json", job.to_json())
    assert jobs.resumable("c") == (JOB.id, ["step-7"])
    replace(nodes, job=second).put("checkpoints/step-9.json", {"world_size": 4})
    assert jobs.resumable("c") == ("b", ["step-9"])


def test_one_unreadable_job_does_not_end_the_list(jobs: JobStore, nodes: NodesOfAJob) -> None:
    for job_id, body in (("other-99991231-235959", b"garbage"), ("x$(touch X)-99991231-235959", b"{}")):
        for key in (f"jobs/{job_id}/job.json", f"submitted/{job_id}"):
            nodes.s3.put_object(Bucket=BUCKET, Key=key, Body=body)
    assert [state.job for state in jobs.newest(1)] == [JOB]
    assert jobs.job_ids() == ["other-99991231-235959", JOB.id]


def test_folders_that_nodes_invent_cost_no_requests(nodes: NodesOfAJob) -> None:
    """Nodes can write the end of any job."""
    for number in range(1100):
        nodes.s3.put_object(Bucket=BUCKET, Key=f"jobs/z{number}-99991231-235959/end.json", Body=b"{}")
    requests: list[str] = []
    clients = Clients()
    clients.client("s3", REGION).meta.events.register(
        "before-call.s3", lambda **call: requests.append(call["model"].name)
    )
    assert [state.job for state in JobStore(REGION, BUCKET, clients=clients).newest(20)] == [JOB]
    assert len(requests) < 10


@pytest.mark.parametrize(("stated", "numbers"), [({"attempts": 2}, [2]), ({"attempts": 0}, [1, 2]), ({}, [1, 2])])
def test_brief_list_has_last_attempt_if_its_number_is_known(
    jobs: JobStore, nodes: NodesOfAJob, stated: Mapping[str, int], numbers: list[int]
) -> None:
    for attempt in (1, 2):
        nodes.start(attempt)
        nodes.end_attempt("failed", attempt)
    (running,) = jobs.newest(9, brief=True)
    assert ([attempt.number for attempt in running.attempts], running.is_over) == ([1, 2], False)
    nodes.node(0, "ended", 2, at="2026-11-22T12:05:00Z")
    nodes.end("failed", **stated)
    (brief,) = JobStore(REGION, BUCKET).newest(9, brief=True)
    assert [attempt.number for attempt in brief.attempts] == numbers
    (whole,) = JobStore(REGION, BUCKET).newest(9)
    assert [attempt.number for attempt in whole.attempts] == [1, 2]
    assert (brief.attempt_count, brief.status, brief.freed_at) == (2, "failed", whole.freed_at)
    assert brief.freed_at == datetime(2026, 11, 22, 12, 5, tzinfo=UTC)


def test_job_state_follows_from_node_files(jobs: JobStore, nodes: NodesOfAJob) -> None:
    seen = [status(jobs)]
    nodes.start()
    nodes.node(0, "running")
    seen.append(status(jobs))
    nodes.node(1, "running")
    seen.append(status(jobs))
    nodes.end_attempt("node-lost", reason="i-0b does not answer")
    seen.append(status(jobs))
    nodes.start(2, resume_from="step-10")
    seen.append(status(jobs))
    nodes.end_attempt("succeeded", 2)
    seen.append(status(jobs))
    nodes.end("succeeded")
    seen.append(status(jobs))
    assert seen == [
        "waiting for the nodes",
        "starting",
        "running",
        "node-lost, waiting for the nodes",
        "starting",
        "ending",
        "succeeded",
    ]


@pytest.mark.parametrize(("result", "exit_code", "changes", "retried"), RETRY_CASES)
def test_job_waits_only_after_a_retried_attempt(
    result: str, exit_code: int | None, changes: Mapping[str, Any], retried: bool
) -> None:
    settings = {**RETRY_SETTINGS, **changes}
    job = replace(JOB, **{**settings, "retry_on_exit_codes": tuple(settings["retry_on_exit_codes"])})
    attempt = attempt_state(1, {}, {"result": result, "exit_code": exit_code}, nodes=(), reporting=0)
    state = JobState(job=job, attempts=(attempt,), outcome=None)
    assert state.status == (f"{result}, waiting for the nodes" if retried else "ending")


@pytest.mark.parametrize("content", ["", '{"result": 3}', '{"result": "\x1b[31m", "node": true}', "[" * 100_000])
def test_malformed_node_records_are_tolerated(jobs: JobStore, nodes: NodesOfAJob, content: str) -> None:
    nodes.put("attempts/1/start.json", content)
    nodes.put("attempts/1/nodes/0.json", content)
    nodes.put("end.json", content)
    state = jobs.state(JOB.id, every_node=True)
    assert state
    assert state.outcome
    assert (state.outcome.result, state.outcome.node) == ("failed", None)


def test_attempts_and_nodes_that_a_job_adds_are_not_read(
    jobs: JobStore, nodes: NodesOfAJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise one job could keep `trn jobs` busy for all users."""
    monkeypatch.setattr(aws_job_store, "_MOST_ATTEMPTS", JOB.retries + 1)
    for number in range(1, JOB.retries + 9):
        nodes.put(f"attempts/{number}/start.json", {})
        nodes.put(f"attempts/{number}/end.json", {"result": "node-lost"})
        nodes.put(f"attempts/{number}/nodes/{JOB.nodes}.json", {})
    state = jobs.state(JOB.id, every_node=True)
    assert state
    assert [attempt.number for attempt in state.attempts] == list(range(1, JOB.retries + 2))
    assert {attempt.nodes for attempt in state.attempts} == {()}


def test_only_checkpoints_with_a_manifest_are_complete(jobs: JobStore, nodes: NodesOfAJob) -> None:
    nodes.put("checkpoints/step-10/model.pt", "x")
    nodes.put("checkpoints/step-10.json", {})
    nodes.put("checkpoints/step-20/model.pt", "x")
    nodes.put("checkpoints/step-20/a.json", {})
    assert jobs.checkpoints(JOB.id) == ["step-10"]


def test_files_of_complete_checkpoints_keep_their_paths(jobs: JobStore, nodes: NodesOfAJob, tmp_path: Path) -> None:
    nodes.put("checkpoints/step-10.json", {"parts": ["1-0-1", "1-1-1", "../evil", 3]})
    for rank in (0, 1):
        sizes = {"step-10/meta": 4, f"step-10/shard-{rank}": 1}
        nodes.put(f"checkpoints/step-10/1-{rank}-1.json", {"files": {name: {"size": sizes[name]} for name in sizes}})
        nodes.put(f"checkpoints/step-10/1-{rank}-1/step-10/meta", f"of {rank}")
        nodes.put(f"checkpoints/step-10/1-{rank}-1/step-10/half", "left by a save that went on")
    nodes.put("checkpoints/step-20/1-0-1/step-20/model", "not whole")
    assert set(jobs.files(JOB.id, "checkpoints")) == {
        "checkpoints/step-10/meta",
        "checkpoints/step-10/shard-0",
        "checkpoints/step-10/shard-1",
        "checkpoints/node-1/step-10/meta",
    }
    assert jobs.files(JOB.id, "checkpoints/step-10/shard-1") == {"checkpoints/step-10/shard-1": 1}
    jobs.download(JOB.id, "checkpoints/node-1/step-10/meta", str(tmp_path / "meta"))
    assert (tmp_path / "meta").read_text() == "of 1"


def test_parts_of_incomplete_checkpoints_are_files_by_node(jobs: JobStore, nodes: NodesOfAJob, tmp_path: Path) -> None:
    parts = {"step-1": ["1-0-1", "1-1-2", "../evil"], "gone": ["1-0-1"], "broken": 7}
    nodes.put("attempts/incomplete-checkpoints.json", {"parts": parts})
    for part in ("1-0-1", "1-1-2"):
        nodes.put(f"checkpoints/step-1/{part}.json", {"files": {"step-1/model": {"size": 9}}})
        nodes.put(f"checkpoints/step-1/{part}/step-1/model", f"of {part}")
    folder = "incomplete-checkpoints"
    assert jobs.files(JOB.id, folder) == {f"{folder}/node-{rank}/step-1/model": 9 for rank in (0, 1)}
    jobs.download(JOB.id, f"{folder}/node-1/step-1/model", str(tmp_path / "model"))
    assert (tmp_path / "model").read_text() == "of 1-1-2"
    assert jobs.checkpoints(JOB.id) == []


def test_file_beside_checkpoints_is_that_of_the_newest(jobs: JobStore, nodes: NodesOfAJob, tmp_path: Path) -> None:
    for step in (1, 2):
        files = {"latest": {"size": 1}, f"step{step}/model": {"size": 1}}
        nodes.put(f"checkpoints/step{step}.json", {"parts": ["1-0-1"]})
        nodes.put(f"checkpoints/step{step}/1-0-1.json", {"files": files})
        nodes.put(f"checkpoints/step{step}/1-0-1/latest", str(step))
    found = jobs.files(JOB.id, "checkpoints")
    assert set(found) == {"checkpoints/latest", "checkpoints/step1/model", "checkpoints/step2/model"}
    jobs.download(JOB.id, "checkpoints/latest", str(tmp_path / "latest"))
    assert (tmp_path / "latest").read_text() == "2"


def test_links_of_checkpoints_are_copies(jobs: JobStore, nodes: NodesOfAJob, tmp_path: Path) -> None:
    nodes.put("checkpoints/step-1.json", {"parts": ["1-0-1"]})
    files = {f"step-1/{number}": {"size": 1, "sha256": "0" * 64} for number in range(4000)}
    links = {"step-1/model": "3999", "latest": "step-1"}
    nodes.put("checkpoints/step-1/1-0-1.json", {"files": files, "links": links})
    nodes.put("checkpoints/step-1/1-0-1/step-1/3999", "w")
    found = jobs.files(JOB.id, "checkpoints")
    assert len(found) == 2 * 4001
    for name in ("step-1/model", "latest/3999", "latest/model"):
        jobs.download(JOB.id, f"checkpoints/{name}", str(tmp_path / "copy"))
        assert (tmp_path / "copy").read_text() == "w"


def test_checkpoints_in_another_bucket_are_copied_from_there(
    jobs: JobStore, nodes: NodesOfAJob, tmp_path: Path
) -> None:
    create_bucket("models")
    nodes.put("job.json", replace(JOB, checkpoints="s3://models/kept").to_json())
    saved = f"kept/{JOB.id}/checkpoints/step-10"
    for key, body in (
        (f"{saved}.json", '{"parts": ["1-0-1"]}'),
        (f"{saved}/1-0-1.json", '{"files": {"model.pt": {"size": 7}, "broken": 1}}'),
        (f"{saved}/1-0-1/model.pt", "weights"),
    ):
        nodes.s3.put_object(Bucket="models", Key=key, Body=body.encode())
    assert jobs.files(JOB.id, "checkpoints") == {"checkpoints/model.pt": 7}
    jobs.download(JOB.id, "checkpoints/model.pt", str(tmp_path / "model.pt"))
    assert (tmp_path / "model.pt").read_text() == "weights"


def test_rejected_submission_is_not_a_job(jobs: JobStore) -> None:
    winner, loser = replace(JOB, id="winner-20261122-120000"), replace(JOB, id="loser-20261122-120000")
    over = jobs.current()
    assert [jobs.submit(job, b"", over=over) for job in (winner, loser)] == [True, False]
    assert [state.job.id for state in jobs.newest(9)] == [winner.id]
    assert jobs.state(loser.id) is None


@pytest.mark.usefixtures("jobs")
def test_submitted_job_without_its_record_is_found(nodes: NodesOfAJob) -> None:
    nodes.s3.delete_object(Bucket=BUCKET, Key=f"jobs/{JOB.id}/job.json")
    state = JobStore(REGION, BUCKET).state(JOB.id)
    assert state
    assert state.status == "waiting for the nodes"


def followed(jobs: JobStore, **options: int) -> tuple[list[str], list[str]]:
    """The lines and states until the end."""
    events = list(JobFollower(JOB.id, jobs, pause=lambda _: None, **options).events())
    lines = [event.text for event in events if isinstance(event, LogLine)]
    return lines, [event.status for event in events if isinstance(event, JobState)]


def test_follow_shows_first_rank_and_tracebacks_of_its_node(jobs: JobStore, nodes: NodesOfAJob) -> None:
    nodes.start()
    nodes.log(1, "[rank 0] one\n[rank 1] hidden\nfrom torchrun\n[rank 1] Traceback (most recent call last):\n[rank")
    nodes.log(2, ' 1]   File "train.py"\n[rank 1] ValueError: no\n[rank 1] hidden too\n[rank 0] last')
    nodes.end("failed", reason="ValueError: no")
    lines, states = followed(jobs)
    assert lines == [
        "one",
        "from torchrun",
        "Traceback (most recent call last):",
        '  File "train.py"',
        "ValueError: no",
        "last",
    ]
    assert states == ["failed"]


@pytest.mark.usefixtures("jobs")
def test_follow_ends_after_repeated_errors() -> None:
    pauses: list[float] = []
    follower = JobFollower(JOB.id, FollowedStore(REGION, "no-such-bucket"), pause=pauses.append)
    with pytest.raises(UnavailableError):
        list(follower.events())
    assert len(pauses) == UNANSWERED - 1


def test_attempt_has_time_of_its_checkpoint(jobs: JobStore, nodes: NodesOfAJob) -> None:
    nodes.put("checkpoints/step-7.json", {"world_size": 4, "at": NOON})
    nodes.start()
    nodes.end_attempt("node-lost")
    nodes.start(2, resume_from="step-7", resume_job=JOB.id)
    state = jobs.state(JOB.id, every_node=True)
    assert state
    assert [attempt.checkpoint_at for attempt in state.attempts] == [None, moment(NOON)]


def test_follow_of_a_rank_reads_the_log_of_its_node(jobs: JobStore, nodes: NodesOfAJob) -> None:
    nodes.start()
    nodes.log(1, "[rank 2] mine\n[rank 3] next\n", node=1)
    nodes.log(1, "[rank 0] first\n", node=0)
    nodes.end("succeeded")
    assert followed(jobs, rank=2)[0] == ["mine"]


def test_follow_covers_all_attempts(jobs: JobStore, nodes: NodesOfAJob) -> None:
    for attempt in (1, 2):
        nodes.start(attempt)
        nodes.log(1, f"[rank 0] of {attempt}\n", attempt=attempt)
        nodes.end_attempt("node-lost" if attempt == 1 else "succeeded", attempt)
    nodes.end("succeeded")
    assert followed(jobs)[0] == ["of 1", "of 2"]
    assert followed(jobs, attempt=2)[0] == ["of 2"]

"""What `trn run` and `trn jobs JOB` show about a job."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.cli.jobs.cluster_with_jobs import TWO, Cluster
from tests.cli.jobs.test_job_commands import run_to_the_end
from tests.cli.running import run
from tests.core.job_bucket import JOB
from trainium_cli.jobs.job_report import attempt_rows, progress_text, state_line, state_rows
from trainium_core.costs.estimate import Total
from trainium_core.jobs.progress import JobState
from trainium_wire.job import Job, Outcome
from trainium_wire.job_progress import Attempt, NodeProgress, node_progress, outcome


@pytest.mark.parametrize(
    ("has_ranks", "profile", "fetch"),
    [
        (True, (0, 31), "`trn cp fit-1:outputs/profile profile`, then"),
        (True, (40,), "`trn cp fit-1:outputs/node-1/profile profile`, then"),
        (True, (0, 32), "`trn cp fit-1:outputs/profile profile` (others: outputs/node-1/profile), then"),
        (False, (1,), "`trn cp fit-1:outputs/node-1/profile profile`, then"),
    ],
)
def test_profile_row_names_the_folder_of_each_profiled_node(
    has_ranks: bool, profile: tuple[int, ...], fetch: str
) -> None:
    job = Job(id="fit-1", nodes=2, processes_per_node=32, command="true", has_ranks=has_ranks, profile=profile)
    rows = dict(state_rows(JobState(job=job, attempts=(), outcome=None), None))
    assert fetch in rows["profile"]


def test_progress_is_rounded_and_a_long_command_is_marked_as_cut() -> None:
    progress = {"step": "20", "loss": "2.31", "last_at": "now", "steps_per_second": "118672.7639"}
    assert progress_text(progress) == "step 20, loss 2.31, 118,673 steps/s"
    assert (
        progress_text({"steps_per_second": "0.04567", "tokens_per_second": "99.87"}) == "0.0457 steps/s, 99.9 tokens/s"
    )
    job = Job(id="fit-1", nodes=1, processes_per_node=1, command="python train.py " + "--option value " * 40)
    shown = dict(state_rows(JobState(job=job, attempts=(), outcome=None), None))["command"]
    assert shown.endswith(("--option ...", "value ..."))


def test_reason_of_an_earlier_attempt_is_shown_and_that_of_the_last_is_not() -> None:
    lost, failed = (Outcome(result=result, reason=f"why {result}", at=None) for result in ("node-lost", "failed"))
    attempts = [
        Attempt(number=number, started=None, instance_ids=("i-0",), resume_from=None, outcome=outcome)
        for number, outcome in ((1, lost), (2, failed))
    ]
    job = Job(id="fit-1", nodes=1, processes_per_node=1, command="true", retries=1)
    state = JobState(job=job, attempts=tuple(attempts), outcome=failed)
    assert list(attempt_rows(state, None)) == [("attempt 1", "node-lost: why node-lost")]
    assert state_line(state, 2) == "[2.0 s] failed, attempt 2"
    assert state_line(replace(state, attempts=(attempts[0],), outcome=None), 2) == (
        "[2.0 s] node-lost, waiting for the nodes: why node-lost"
    )


@pytest.mark.parametrize(
    ("checkpoint", "expected"),
    [
        (
            "step-5",
            "the restart cost 90 s: 30 s of work since checkpoint step-5, 60 s until its nodes were available",
        ),
        (
            None,
            "the restart cost at most 2 min 40 s: 100 s of work, or less if it continued from its outputs, "
            "60 s until its nodes were available",
        ),
    ],
)
def test_restart_without_a_checkpoint_costs_at_most_the_work_since_the_start(
    checkpoint: str | None, expected: str
) -> None:
    begun = datetime(2026, 11, 24, 12, tzinfo=UTC)
    lost = Outcome(result="node-lost", reason="", at=begun + timedelta(seconds=100))
    first = Attempt(number=1, started=begun, instance_ids=(), resume_from=None, outcome=lost)
    saved = begun + timedelta(seconds=70) if checkpoint else None
    started = begun + timedelta(seconds=160)
    second = Attempt(number=2, started=started, instance_ids=(), resume_from=checkpoint, checkpoint_at=saved)
    job = Job(id="fit-1", nodes=1, processes_per_node=1, command="true", retries=1)
    state = JobState(job=job, attempts=(first, second), outcome=None)
    assert ("attempt 2", expected) in [*attempt_rows(state, None)]


@pytest.mark.parametrize("states", [("results", "succeeded"), ("succeeded", "succeeded"), ("failed", "ending")])
def test_state_does_not_return_to_running_while_results_are_stored(states: tuple[str, str]) -> None:
    nodes = tuple(NodeProgress(node=rank, instance_id="i-0", state=state, at=None) for rank, state in enumerate(states))
    job = Job(id="fit-1", nodes=2, processes_per_node=1, command="true")
    attempt = Attempt(number=1, started=None, instance_ids=(), resume_from=None, reporting=2, nodes=nodes)
    assert JobState(job=job, attempts=(attempt,), outcome=None).status == "storing results"


def test_cost_of_a_job_with_its_own_nodes_excludes_the_queue() -> None:
    ended = Outcome(result="succeeded", reason="", at=datetime(2026, 11, 24, 18, tzinfo=UTC))
    started = datetime(2026, 11, 24, 17, 30, tzinfo=UTC)
    attempt = Attempt(number=1, started=started, instance_ids=("i-0",), resume_from=None, outcome=ended)
    job = Job(id="fit-1", nodes=1, processes_per_node=1, command="true", submitted_at="2026-11-24T16:00:00Z")
    state = JobState(job=job, attempts=(attempt,), outcome=ended)
    hour = Total(usd=Decimal(10), unknown=0)
    assert dict(state_rows(state, hour))["cost"].startswith("$20.00 for the cluster")
    own = replace(state, has_own_nodes=True)
    assert dict(state_rows(own, hour))["cost"].startswith("$5.00 for 30 min of its attempts")
    assert "cost" not in dict(state_rows(replace(own, attempts=()), hour))


def test_run_shows_what_is_left_out_and_the_size_of_the_source(cluster: Cluster) -> None:
    Path(".gitignore").write_text("*.log\n")
    for name in ("a.log", "results/train-1/model.pt"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("of an earlier job")
    ended, _ = run_to_the_end(cluster, "succeeded", "--source", ".", "--outputs", "results")
    assert (
        "Left out of the source: a.log (.gitignore); results (outputs of earlier jobs)\nIf the job needs one,"
        in ended.stderr
    )
    assert re.search(r"source +2 files, \d+ bytes, packed \d+ bytes", ended.stdout), ended.stdout
    assert "Measured on the CPUs of this machine" not in ended.stdout


def test_job_on_the_embedded_aws_says_what_its_times_measure(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainium_runtime.aws_service.is_aws", lambda _: False)
    ended, _ = run_to_the_end(cluster, "succeeded")
    assert "Measured on the CPUs of this machine, not on Trainium" in ended.stdout


def test_outputs_that_a_lost_node_had_not_stored_are_named(cluster: Cluster) -> None:
    assert cluster.jobs.submit(JOB, b"", over=None)
    left = {"unstored": "outputs of the node that were written after 12:03 are not in S3, among them model.pt"}
    for attempt, result in enumerate(("node-lost", "succeeded"), 1):
        cluster.job_nodes.start(attempt)
        cluster.job_nodes.node(0, "succeeded" if result == "succeeded" else "ended", attempt, **left)
        cluster.job_nodes.node(1, "succeeded" if result == "succeeded" else "running", attempt, **left)
        cluster.job_nodes.end_attempt(result, attempt)
    cluster.job_nodes.end("succeeded")
    shown = " ".join(run("jobs", *TWO, JOB.id).output.split())
    assert f"attempt 1 node 1: {left['unstored']}" in shown
    assert shown.count("model.pt") == 1


def test_end_of_a_job_names_the_failing_devices_of_all_nodes_with_the_fix(cluster: Cluster) -> None:
    """The node that wrote the end knows only its own devices."""
    assert cluster.jobs.submit(JOB, b"", over=None)
    own, other = (f"Neuron device {device}: new uncorrectable SRAM errors (sram_ecc_uncorrected)" for device in (3, 7))
    end = {"reason": f"rank 0 on node 0: NRT_TIMEOUT; {own}", "node": 0}
    cluster.job_nodes.start()
    cluster.job_nodes.node(0, "failed", device_errors=[own])
    cluster.job_nodes.node(1, "ended", device_errors=[other])
    cluster.job_nodes.end_attempt("failed", **end)
    cluster.job_nodes.end("failed", **end)
    shown = " ".join(run("jobs", *TWO, JOB.id).stdout.split())
    assert f"Reason: {end['reason']}; node 1: {other} Cause: the memory of a device has an uncorrectable" in shown
    assert f"node 1: {other}" in " ".join(run("logs", *TWO, JOB.id).stderr.split())


def test_devices_that_the_end_of_a_successful_job_names_are_named_once() -> None:
    devices = [f"Neuron device {device}: new uncorrectable SRAM errors" for device in range(3)]
    nodes = [node_progress(node, {"state": "succeeded", "device_errors": devices[: node + 1]}) for node in (0, 1)]
    end = {
        "result": "succeeded",
        "node": 0,
        "reason": f"results may be wrong: node 0: {devices[0]}, node 1: {devices[0]}",
    }
    # The last report of a node may have more than node 0 had read.
    found = outcome(end, nodes)
    assert found
    assert found.reason == f"{end['reason']}; node 1: {devices[0]}, {devices[1]}"
    complete = outcome({**end, "reason": found.reason}, nodes)
    assert complete
    assert complete.reason == found.reason


def test_failure_of_a_known_rank_is_not_explained_by_the_end_of_torchrun(cluster: Cluster) -> None:
    job_nodes = replace(cluster.job_nodes, job=JOB)
    assert cluster.jobs.submit(JOB, b"", over=None)
    job_nodes.start()
    job_nodes.log(1, "[rank 0] ValueError: no\nW torch.distributed Sending process 7 closing signal SIGTERM\n")
    failure: dict[str, Any] = {"reason": "rank 0: ValueError: no", "traceback": "ValueError: no", "node": 0, "rank": 0}
    job_nodes.end_attempt("failed", **failure)
    job_nodes.end("failed", **failure)
    assert run("jobs", *TWO, JOB.id).stdout.endswith("\nReason: rank 0: ValueError: no\n")


def test_utilization_of_each_node_is_shown_over_time_and_recorded(cluster: Cluster) -> None:
    nodes = cluster.job_nodes
    assert cluster.jobs.submit(JOB, b"", over=None)
    nodes.start()
    measured = {"minutes": 1, "buckets": [[0, 1], [50, 1], [0, 0], [100, 1]], "execution_errors": 3}
    nodes.node(0, "running", utilization=measured)
    shown = " ".join(run("jobs", *TWO, JOB.id).stdout.split())
    assert "cores 50% on average; node 0 50% ▁▅ █; 3 executions with errors" in shown
    lines = [json.loads(line) for line in run("jobs", *TWO, JOB.id, "--record").stdout.splitlines()]
    (found,) = [line for line in lines if line["event"] == "utilization"]
    assert (found["node"], found["over_time"], found["ecc_uncorrected"]) == (0, [0, 50, None, 100], None)

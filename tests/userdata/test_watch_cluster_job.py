"""The watch of a node and the job of the cluster."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.retry_cases import RETRY_CASES
from tests.userdata.aws_stand_in import INSTANCE_ID, AwsStandIn
from tests.userdata.node_files import BUCKET, JOB
from tests.userdata.watch_node import FIRST, LATER, NOON, SECOND, JobNode
from trainium_userdata.node.trn_node import cluster, files, notices
from trainium_userdata.node.trn_node.cluster_job import CLOSE_SECONDS
from trainium_userdata.node.trn_node.job_unit import LAUNCH


@pytest.fixture
def node(tmp_path: Path, aws: AwsStandIn, monkeypatch: pytest.MonkeyPatch) -> JobNode:
    made = JobNode(tmp_path, aws, monkeypatch)
    made.membership(FIRST)
    return made


@pytest.fixture
def unreachable(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Addresses that do not answer."""
    lost: set[str] = set()
    monkeypatch.setattr(cluster, "_unreachable_address", lambda target: target[0] if target[0] in lost else "")
    return lost


def test_first_node_begins_new_job_with_the_nodes_of_the_membership(node: JobNode):
    node.submit()
    node.settle()
    start = node.content("attempts/1/start.json")
    assert (start["attempt"], start["membership"], start["resume_from"]) == (1, "v1", None)
    assert start["nodes"] == [{"instance_id": name, "address": address} for name, address in FIRST]


@pytest.mark.parametrize(
    ("is_first", "nodes", "seconds"), [(True, 600, 1), (False, 2, 1), (False, 600, 3), (False, 2000, 5)]
)
def test_poll_interval_for_jobs_depends_on_the_number_of_nodes(
    is_first: bool, nodes: int, seconds: float, node: JobNode, unreachable: set[str]
):
    assert not unreachable
    others = [(f"i-{number:017x}", f"10.0.{number // 200}.{number % 200}") for number in range(nodes - 1)]
    own_member = (INSTANCE_ID, "127.0.0.2")
    node.membership([own_member, *others] if is_first else [*others, own_member])
    node.settle()
    assert node.watch.seconds == seconds


def test_watch_notices_immediately_that_the_job_has_ended_here(node: JobNode):
    node.submit(nodes=1)
    node.settle()
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as program:
        node.unit("active", process=program.pid)
        node.settle()
        program.communicate()
    node.end_attempt("succeeded", exit_code=0)
    node.watch.wait()
    node.watch.step()
    assert node.content("end.json")["result"] == "succeeded"


def test_job_unit_is_restricted_and_has_a_private_folder(node: JobNode):
    node.membership(SECOND)
    node.submit()
    node.started_by_another(SECOND)
    node.settle()
    [words] = node.starts
    assert "--uid=trn-job" in words
    assert f" env HOME={node.launch['folder']} " in words
    for path in ("/home", "/run/dbus", "/run/cloud-init/tmp", "/var/cache/trn/self-test", "/var/crash"):
        assert f" --property=InaccessiblePaths=-{path} " in words
    assert " --property=TemporaryFileSystem=/run/lock:mode=1777 " in words
    for name in ("NoNewPrivileges", "RestrictSUIDSGID", "PrivateTmp", "RemoveIPC"):
        assert f" --property={name}=yes " in words
    assert " --property=KillMode=control-group " in words
    assert "WatchdogSec=120" in words
    assert words.endswith(f"python3 -m trn_job {files.path(LAUNCH)}")
    assert (node.launch["rank"], node.launch["attempt"], node.launch["spec"]["id"]) == (1, 1, JOB)
    folder = Path(node.launch["folder"])
    assert (folder.stat().st_mode & 0o777, list(folder.iterdir())) == (0o700, [])


@pytest.mark.parametrize("cached", [True, False])
def test_job_has_environment_of_its_stack_and_optional_compile_cache(node: JobNode, cached: bool):
    python = node.root / "opt/aws_neuronx_venv_pytorch_2_9/bin/python"
    python.parent.mkdir(parents=True)
    python.touch()
    found = {"torch_neuronx": "native", "pytorch": "xla"}
    node.plan(instance_type="trn1.32xlarge", logical_neuroncore_config=None, frameworks=found)
    files.write(files.LOCATIONS, files.read(files.LOCATIONS) + "TRN_CACHE_URL=s3://compiled/cache\n")
    node.submit(stack="xla", compile_cache=cached)
    node.settle()
    assert node.launch["venv"] == str(python.parent.parent)
    assert bool(node.launch["compile_cache"]) == cached


def test_node_without_a_part_in_the_job_starts_nothing(node: JobNode):
    node.membership(SECOND)
    node.submit(nodes=1)
    node.started_by_another(SECOND[:1])
    node.settle()
    assert node.starts == []


def test_unverified_node_starts_nothing_and_reports_why(node: JobNode):
    node.membership(SECOND)
    node.verify("failed", "15 of 16 Neuron devices")
    node.submit()
    node.started_by_another(SECOND)
    node.settle()
    end = node.content("attempts/1/end.json")
    assert node.starts == []
    assert (end["result"], end["node"]) == ("failed", 1)
    assert end["reason"] == f"node 1 ({INSTANCE_ID}) is not verified: failed 15 of 16 Neuron devices"


def test_jobs_do_not_run_as_root(node: JobNode):
    files.write("etc/passwd", "root:x:0:0::/root:/bin/bash\nubuntu:x:1000:1000::/home/ubuntu:/bin/bash\n")
    node.submit()
    node.settle()
    assert node.starts == []
    assert "jobs do not run as root" in node.content("attempts/1/end.json")["reason"]


def test_rebooted_node_leaves_the_job(node: JobNode):
    node.membership(SECOND)
    node.submit()
    node.started_by_another(SECOND)
    node.settle()
    node.unit("inactive")
    node.reboot()
    node.settle()
    end = node.content("attempts/1/end.json")
    assert (end["result"], end["reason"]) == (
        "node-lost",
        f"node 1 ({INSTANCE_ID}) has left the job: it was restarted",
    )
    assert len(node.starts) == 1


def test_processes_that_vanish_without_a_report_lose_the_node(node: JobNode):
    node.membership(SECOND)
    node.submit()
    node.started_by_another(SECOND)
    node.settle()
    node.unit("inactive")
    node.settle()
    assert node.content("attempts/1/end.json")["reason"].endswith("has left the job: the job's processes were ended")


def test_node_that_left_the_membership_is_lost(node: JobNode):
    node.submit(retries=0)
    node.settle()
    node.membership([FIRST[0], ("i-2aaaaaaaaaaaaaaa2", "127.0.0.4")], version="v2")
    node.pass_time(60)
    end = node.content("attempts/1/end.json")
    assert (end["result"], end["reason"]) == ("node-lost", f"no longer in the cluster: {LATER}")


def test_job_resumes_from_its_newest_checkpoint_after_a_lost_node(node: JobNode):
    node.submit()
    node.settle()
    for name in ("step-200", "step-1000", "step-30"):
        node.put(f"checkpoints/{name}.json", {})
    node.put("checkpoints/step-2000/file", {})
    new = [FIRST[0], ("i-2aaaaaaaaaaaaaaa2", "127.0.0.4")]
    node.end_attempt("node-lost")
    node.membership(new, version="v2")
    node.others_are_ready(version="v2")
    node.pass_time(60)
    start = node.content("attempts/2/start.json")
    assert (start["attempt"], start["resume_from"], start["resume_job"]) == (2, "step-1000", JOB)
    assert [each["instance_id"] for each in start["nodes"]] == [name for name, _ in new]
    assert node.launch["attempt"] == 2
    assert not node.content("end.json")


def test_restart_waits_until_every_node_is_ready(node: JobNode, capsys: pytest.CaptureFixture[str]):
    node.submit()
    node.settle()
    node.end_attempt("node-lost")
    node.others_are_ready(but=LATER)
    node.others_are_ready(version="v0")
    node.settle()
    assert not node.content("attempts/2/start.json")
    assert capsys.readouterr().out.count(f"waits: not ready for attempt 2: {LATER}\n") == 1
    node.others_are_ready()
    node.settle()
    assert node.content("attempts/2/start.json")


def test_node_is_ready_once_it_reaches_its_neighbours(node: JobNode, unreachable: set[str]):
    node.membership(SECOND)
    node.submit()
    node.started_by_another(SECOND)
    node.settle()
    node.end_attempt("node-lost")
    unreachable.add(SECOND[0][1])
    node.settle()
    key = f"{BUCKET}/jobs/{JOB}/attempts/2/ready/v1/{INSTANCE_ID}.json"
    assert key not in node.aws.records
    unreachable.clear()
    node.settle()
    assert key in node.aws.records


def test_node_that_is_not_verified_or_still_stores_results_is_not_ready(node: JobNode):
    node.membership(SECOND)
    node.submit()
    node.started_by_another(SECOND)
    node.settle()
    node.end_attempt("node-lost")
    node.unit("deactivating")
    node.settle()
    node.verify("failed", "15 of 16 Neuron devices")
    node.unit("inactive")
    node.settle()
    assert not [key for key in node.aws.records if "/ready/" in key]


def test_results_of_an_attempt_are_stored_before_the_next_begins(node: JobNode):
    node.submit()
    node.settle()
    node.end_attempt("node-lost")
    node.others_are_ready()
    node.unit("deactivating")
    node.settle()
    assert not node.content("attempts/2/start.json")
    node.unit("inactive")
    node.settle()
    assert node.content("attempts/2/start.json")


@pytest.mark.parametrize(("result", "exit_code", "changes", "retried"), RETRY_CASES)
def test_attempt_is_retried_as_the_job_specifies(
    result: str, exit_code: int | None, changes: dict[str, Any], retried: bool, node: JobNode
):
    node.submit(**changes)
    node.settle()
    node.end_attempt(result, exit_code=exit_code)
    node.others_are_ready()
    node.settle()
    assert bool(node.content("attempts/2/start.json")) == retried
    end = node.content("end.json")
    assert (end.get("result"), end.get("attempts")) == ((None, None) if retried else (result, 1))


@pytest.mark.parametrize(
    ("joined", "checkpoints", "attempts"),
    [((0, 1), {}, 2), ((0,), {}, 4), ((0, 1), {2: "step-2"}, 3), ((0, 1), {1: "step-1", 2: "step-2", 3: "step-3"}, 4)],
    ids=["no progress", "lost before all joined", "late progress", "more progress"],
)
def test_retries_limit_the_restarts_without_progress(
    node: JobNode, joined: tuple[int, ...], checkpoints: dict[int, str], attempts: int
):
    """`joined` is about all attempts but the last two, and `checkpoints` has those that an attempt completes."""
    node.submit()
    node.settle()
    for attempt in range(1, attempts + 1):
        assert not node.content("end.json")
        if attempt in checkpoints:
            node.put(f"checkpoints/{checkpoints[attempt]}.json", {})
        node.end_attempt("node-lost", attempt, joined=joined if attempt < attempts - 1 else (0, 1))
        node.others_are_ready(attempt + 1)
        node.pass_time(120)
    assert (node.content("end.json")["result"], node.content("end.json")["attempts"]) == ("node-lost", attempts)
    assert not node.content(f"attempts/{attempts + 1}/start.json")


def test_second_restart_without_progress_waits(node: JobNode):
    node.submit(retries=2)
    node.settle()
    for attempt in (1, 2):
        node.end_attempt("node-lost", attempt)
        node.others_are_ready(attempt + 1)
        node.pass_time(10)
        assert bool(node.content(f"attempts/{attempt + 1}/start.json")) == (attempt == 1)
    node.settle()
    assert node.content("attempts/3/start.json")


def test_job_stopped_between_two_attempts_ends(node: JobNode, unreachable: set[str]):
    node.submit()
    node.settle()
    unreachable.add("127.0.0.3")
    node.end_attempt("node-lost")
    node.put("stop.json", {"at": notices.iso(NOON), "reason": "trn stop"})
    node.settle()
    assert (node.content("end.json")["result"], node.content("end.json")["reason"]) == ("stopped", "trn stop")


def test_wait_for_a_node_counts_towards_the_time_limit(node: JobNode, unreachable: set[str]):
    node.submit(time_limit_seconds=75)
    node.started_by_another(FIRST)
    node.settle()
    unreachable.add("127.0.0.3")
    node.end_attempt("node-lost")
    node.settle()
    assert not node.content("end.json")
    node.settle()
    assert node.content("end.json")["result"] == "time-limit"


def test_another_node_ends_the_job_if_the_first_does_not(node: JobNode):
    node.membership(SECOND)
    node.submit()
    node.started_by_another(SECOND)
    node.settle()
    node.end_attempt("failed", exit_code=1)
    node.settle()
    assert not node.content("end.json")
    node.pass_time(CLOSE_SECONDS)
    assert node.content("end.json")["result"] == "failed"


def test_ended_job_is_not_started_again(node: JobNode):
    node.submit()
    node.put("end.json", {"result": "succeeded"})
    node.settle()
    assert node.starts == []


def test_next_job_gets_a_new_folder_and_the_last_is_deleted(node: JobNode):
    node.submit(nodes=1)
    node.settle()
    first = Path(node.launch["folder"])
    node.end_attempt("succeeded", exit_code=0)
    node.settle()
    node.submit(nodes=1, id="next")
    node.settle()
    assert node.launch["spec"]["id"] == "next"
    assert [path.name for path in first.parent.iterdir()] == ["next-1"]


@pytest.mark.parametrize(("checkpoints", "folder"), [(None, f"{BUCKET}/jobs"), ("s3://models/kept", "models/kept")])
def test_job_resumes_from_the_last_checkpoint_of_an_earlier_job(node: JobNode, checkpoints: str | None, folder: str):
    node.aws.records[f"{folder}/earlier/checkpoints/step-5.json"] = "{}"
    node.submit(resume_from="earlier", checkpoints=checkpoints)
    node.settle()
    start = node.content("attempts/1/start.json")
    assert (start["resume_from"], start["resume_job"]) == ("step-5", "earlier")


def test_job_without_its_requested_checkpoint_fails(node: JobNode):
    node.submit(resume_from="earlier")
    node.settle()
    assert node.content("end.json")["reason"] == "job earlier has no complete checkpoint to continue from"


@pytest.mark.parametrize("changes", [{"format": 3}, {"id": "../../etc"}, {"nodes": 0}])
def test_invalid_job_is_logged_and_not_run(changes: dict[str, Any], node: JobNode, capsys: pytest.CaptureFixture[str]):
    node.submit(**changes)
    node.settle()
    assert node.starts == []
    assert "job: ValueError: job.json is not a job: " in capsys.readouterr().out


def test_linked_folder_of_jobs_is_not_used(node: JobNode):
    (node.root / "var/lib").mkdir(parents=True, exist_ok=True)
    (node.root / "elsewhere").mkdir()
    (node.root / "var/lib/trn-jobs").symlink_to(node.root / "elsewhere")
    node.submit()
    node.settle()
    assert "is a link or not owned by root" in node.content("attempts/1/end.json")["reason"]


def test_job_for_more_nodes_than_exist_waits(node: JobNode, capsys: pytest.CaptureFixture[str]):
    node.submit(nodes=3)
    node.settle()
    assert not node.content("attempts/1/start.json")
    assert capsys.readouterr().out.count("waits: 2 of 3 nodes are in the membership") == 1


def test_nothing_begins_before_all_peers_answer(node: JobNode, unreachable: set[str]):
    unreachable.add("127.0.0.3")
    node.submit()
    node.settle()
    assert not node.content("attempts/1/start.json")

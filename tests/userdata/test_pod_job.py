"""A job of `trn run` in the pods of a JobSet: the rendered environment, and our program in two processes."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.userdata.aws_stand_in import AwsStandIn
from tests.userdata.node_files import BUCKET, JOB, TIMEOUT_SECONDS
from tests.userdata.plans import plan_for
from tests.userdata.pods import Pods
from tests.userdata.verified_node import PACKAGES
from trainium_userdata.node.trn_job.scheduled_attempts import ScheduledAttempts
from trainium_userdata.node.trn_node import files
from trainium_userdata.node.trn_node.objects import Objects
from trainium_userdata.node.trn_pod.__main__ import conclude
from trainium_wire.job import RESTART_CODE

SHOWS = """import os
print(*(os.environ[name] for name in ('TRN_NODES', 'TRN_NODE_RANK', 'HEAD_NODE', 'TRN_ATTEMPT', 'AWS_REGION')))
print('ROOT' in os.environ, 'PYTHONPATH' in os.environ)
"""
FAILS_ONCE = """import os, pathlib, sys
folder = pathlib.Path(os.environ["TRN_CHECKPOINT_DIR"])
before = os.environ.get("TRN_RESUME_FROM")
print("resumed", before and pathlib.Path(before, "state").read_text(), flush=True)
if not before:
    new = folder / ".step-1"
    new.mkdir()
    (new / "state").write_text("one")
    new.rename(folder / "step-1")
    sys.exit(9)
"""


TERMINATED_IN_A_DESTRUCTOR = """import os, signal
from {module} import {handler}
class Response:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
signal.signal(signal.SIGTERM, {handler})
Response()
"""


@pytest.fixture
def pods(tmp_path: Path, aws: AwsStandIn) -> Iterator[Pods]:
    made = Pods(tmp_path / "pods", plan_for("trn1.32xlarge", nodes=2, stacks=("eks",), eks_cluster="prod"), aws)
    yield made
    made.close()


def test_job_succeeds_in_both_pods(pods: Pods) -> None:
    pods.submit({"train.py": SHOWS})
    pods.start()
    assert pods.wait() == [0, 0], pods.output(0)
    assert [f"2 {rank} 127.0.0.2 1 us-west-2\nFalse False" in pods.log(rank=rank) for rank in (0, 1)] == [True, True]
    assert (pods.content("end.json")["result"], pods.content("end.json")["attempts"]) == ("succeeded", 1)
    assert [one["instance_id"] for one in pods.content("attempts/1/start.json")["nodes"]] == [
        "ip-10-0-0-0",
        "ip-10-0-0-1",
    ]
    # The program reads the error counters of the node's devices.
    assert (pods.folder / "work-0-1/root/sys").samefile("/sys")


def test_retried_job_continues_from_its_checkpoint(pods: Pods) -> None:
    pods.submit({"train.py": FAILS_ONCE}, retries=1, retry_on_exit_codes=[9])
    pods.start()
    assert pods.wait() == [RESTART_CODE, 0], pods.output(0)
    assert not pods.content("end.json")
    pods.start()
    assert pods.wait() == [0, 0], pods.output(0, 1)
    assert "resumed one" in pods.log(attempt=2)
    assert (pods.content("end.json")["result"], pods.content("end.json")["attempts"]) == ("succeeded", 2)


def test_broken_script_fails_the_set_at_once(pods: Pods) -> None:
    pods.submit({"train.py": "import sys; sys.exit(3)"}, retries=2)
    pods.start()
    assert pods.wait() == [1, 0], pods.output(0)
    assert pods.content("end.json")["exit_code"] == 3


@pytest.mark.parametrize("present", [0, 1])
def test_wait_for_a_missing_pod_is_bounded_and_names_its_index(pods: Pods, present: int) -> None:
    pods.wait_seconds = 3
    pods.submit({"train.py": SHOWS}, retries=2)
    pods.start(present)
    assert pods.wait() == [1]
    assert f"the pods with index {1 - present} of 2 were missing" in pods.content("end.json")["reason"]
    assert not pods.content("attempts/1/start.json")


def test_job_stopped_before_all_pods_run_ends_the_pod(pods: Pods) -> None:
    pods.submit({"train.py": SHOWS})
    pods.put("stop.json", {"reason": "trn stop"})
    pods.start(0)
    assert pods.wait() == [1]
    assert pods.content("end.json")["result"] == "stopped"


@pytest.mark.parametrize("restarts", [0, 1])
def test_second_submission_begins_no_attempt(pods: Pods, restarts: int) -> None:
    pods.submit({"train.py": SHOWS}, retries=1)
    pods.put("attempts/1/start.json", {"attempt": 1, "submission": "uid-1", "nodes": []})
    pods.uid, pods.restarts = "uid-2", restarts
    pods.start(0)
    assert pods.wait() == [1]
    assert "it was submitted twice to JobSet" in pods.output(0)
    assert not pods.content("attempts/2/start.json")


def test_suspended_job_continues_from_its_checkpoint_when_it_resumes(pods: Pods) -> None:
    pods.submit({"train.py": FAILS_ONCE.replace("sys.exit(9)", "import time; time.sleep(600)")}, retries=1)
    pods.start()
    pods.await_(lambda: pods.content("checkpoints/step-1.json"))
    assert pods.suspend() == [RESTART_CODE, 0], pods.output(0)
    pods.start()
    assert pods.wait() == [0, 0], pods.output(0, 1)
    assert "resumed one" in pods.log(attempt=2)
    assert (pods.content("end.json")["result"], pods.content("end.json")["attempts"]) == ("succeeded", 2)


def test_pods_of_a_suspended_start_are_not_counted(pods: Pods) -> None:
    pods.submit({"train.py": SHOWS})
    pods.start(0)
    pods.await_(lambda: any("/ready/uid-1-0/" in key for key in pods.aws.records))
    assert pods.suspend() == [RESTART_CODE]
    pods.start(1)  # It answers the call of the first pod, which has ended.
    pods.await_(lambda: any(key.endswith("/1.json") for key in pods.aws.records))
    pods.start(0)
    assert pods.wait() == [0, 0], pods.output(0, 1)
    assert [node["address"] for node in pods.content("attempts/1/start.json")["nodes"]] == ["127.0.1.2", "127.0.1.3"]


@pytest.mark.parametrize(
    ("module", "handler", "code"), [("trn_pod.__main__", "end_early", RESTART_CODE), ("trn_eks.__main__", "end", 143)]
)
def test_termination_in_a_destructor_ends_a_pod(module: str, handler: str, code: int) -> None:
    """Python ignores exceptions in a destructor, which an HTTP response has."""
    program = TERMINATED_IN_A_DESTRUCTOR.format(module=module, handler=handler)
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": PACKAGES}, check=False)
    assert done.returncode == code


@pytest.mark.parametrize("service", ["S3", "Pod Identity"])
def test_pods_wait_while_a_service_is_unavailable(pods: Pods, service: str) -> None:
    pods.submit({"train.py": SHOWS})
    statuses = iter([503] * 50)
    name = "identity_status" if service == "Pod Identity" else "get_status"
    setattr(pods.aws, name, lambda *_: next(statuses, 200))
    pods.start()
    assert pods.wait() == [0, 0], pods.output(0)
    assert "retrying" in pods.output(0) + pods.output(1)


@pytest.mark.parametrize(("status", "seconds"), [(503, 1.0), (403, TIMEOUT_SECONDS)])
def test_pods_end_if_s3_stays_unavailable_or_refuses(pods: Pods, status: int, seconds: float) -> None:
    pods.wait_seconds = seconds
    pods.submit({"train.py": SHOWS})
    pods.aws.get_status = lambda name: 200 if name.endswith("/job.json") else status
    pods.start(0)
    assert pods.wait() == [1]
    assert f": {status} " in pods.output(0)


def test_job_in_an_image_without_a_framework_says_that_it_has_no_compile_cache(pods: Pods) -> None:
    pods.submit({"train.py": SHOWS})
    pods.start()
    assert pods.wait() == [0, 0]
    assert "no compile cache: python3 of the image has no framework" in pods.log()


def test_pod_without_an_identity_names_the_association(pods: Pods, monkeypatch: pytest.MonkeyPatch) -> None:
    pods.submit({"train.py": SHOWS})
    environment = pods.environment

    def without(index: int) -> dict[str, str]:
        return {key: value for key, value in environment(index).items() if "CONTAINER" not in key}

    monkeypatch.setattr(pods, "environment", without)
    pods.start(0)
    assert pods.wait() == [1]
    assert "needs an EKS Pod Identity association" in pods.output(0)


class WaitingError(Exception):
    """The program waits."""


@pytest.mark.parametrize("terminated", [False, True])
def test_first_pod_waits_for_results_of_others_unless_kubernetes_ends_it(
    pods: Pods, monkeypatch: pytest.MonkeyPatch, terminated: bool
) -> None:
    pods.submit({"train.py": SHOWS}, retries=1)
    pods.put("attempts/1/start.json", {"attempt": 1, "submission": "uid-1", "nodes": []})
    pods.put("attempts/1/end.json", {"result": "node-lost"})
    for name, value in {**pods.aws.loopback_environment, "ROOT": str(pods.folder)}.items():
        monkeypatch.setenv(name, value)
    files.write(files.LOCATIONS, f"TRN_REGION={pods.aws.region}\n")
    url, s3 = f"s3://{BUCKET}/jobs", Objects(retries=0)
    attempts = ScheduledAttempts(JOB, s3, url, scheduler="JobSet", submission="uid-1")

    def wait(_seconds: float) -> None:
        raise WaitingError

    monkeypatch.setattr("time.sleep", wait)
    attempt: Any = SimpleNamespace(terminated=terminated)
    with nullcontext() if terminated else pytest.raises(WaitingError):
        assert conclude(attempts, attempt, 1) == RESTART_CODE

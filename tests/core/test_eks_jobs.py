"""Jobs on EKS, with S3 and CloudFormation in moto, and a stand-in for kubectl that records its calls."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws

from tests.core.aws_stubs import create_bucket, put_record, stack_record
from tests.core.job_bucket import BUCKET
from tests.core.plans import from_settings, the_problem
from trainium_core.engines.eks.aws_jobs import KubernetesJobs, PreparedEksJob
from trainium_core.engines.eks.kubectl import Kubectl, cluster_context
from trainium_core.engines.eks.set_states import set_states
from trainium_core.jobs.engine import NoStackError, NotStartedError, check_keys
from trainium_core.jobs.problems import JobError
from trainium_core.jobs.request import JobRequest
from trainium_core.jobs.source_package import pack_source
from trainium_runtime.aws_service import Clients
from trainium_runtime.errors import RequestRefusedError, UnavailableError

pytestmark = pytest.mark.usefixtures("made_up_credentials")

PLAN = from_settings(nodes=2, stacks="eks", eks_cluster="prod", eks_namespace="training", eks_image="image:1")
STACK = "EksJobsStack"
CONFIG = {
    "current-context": "other",
    "contexts": [
        {"name": "other", "context": {"cluster": "arn:aws:eks:us-west-2:111122223333:cluster/dev"}},
        {"name": "mine", "context": {"cluster": "arn:aws:eks:us-west-2:111122223333:cluster/prod"}},
    ],
}
RECORDER = """#!/bin/bash
echo "$*" >>"$KUBECTL/calls"
case "$1" in
config) cat "$KUBECTL/config" ;;
apply) cat >"$KUBECTL/applied"; if [[ -e $KUBECTL/refusal ]]; then cat "$KUBECTL/refusal" >&2; exit 1; fi ;;
get) if [[ -e $KUBECTL/absent/$3 ]]; then echo 'Error from server (NotFound): no' >&2; exit 1; fi
  if [[ -e $KUBECTL/error ]]; then cat "$KUBECTL/error" >&2; exit 1; fi
  cat "$KUBECTL/items" ;;
esac
"""


class Recorder:
    """The stand-in for kubectl: its files, and what it was called with."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "absent").mkdir(parents=True)
        (folder / "config").write_text(json.dumps(CONFIG))
        (folder / "kubectl").write_text(RECORDER)
        (folder / "kubectl").chmod(0o755)
        self.items()

    def items(self, *items: Any) -> None:
        self.write("items", json.dumps({"items": items}))

    def write(self, name: str, text: str = "") -> None:
        (self._folder / name).write_text(text)

    @property
    def calls(self) -> list[str]:
        return (self._folder / "calls").read_text().splitlines()

    @property
    def applied(self) -> list[Any]:
        return json.loads((self._folder / "applied").read_text())["items"]


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    folder = tmp_path / "kubectl"
    monkeypatch.setenv("KUBECTL", str(folder))
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return Recorder(folder)


@pytest.fixture
def jobs(kubectl: Recorder) -> Iterator[KubernetesJobs]:
    del kubectl
    with mock_aws():
        create_bucket(BUCKET)
        put_record(stack_record(STACK, engine="eks", bucket=BUCKET))
        yield KubernetesJobs(PLAN, STACK, Clients())


Prepare = Callable[..., PreparedEksJob]


@pytest.fixture
def prepare(jobs: KubernetesJobs, tmp_path: Path) -> Prepare:
    script = tmp_path / "train.py"
    script.write_text("print('hello')\n")

    def made(*, now: datetime | None = None, **request: Any) -> PreparedEksJob:
        package = pack_source(script)
        return jobs.prepare(JobRequest(script=Path("train.py"), **request), package, now or datetime.now(UTC))

    return made


def job_set(job: PreparedEksJob, **fields: Any) -> dict[str, Any]:
    return {"kind": "JobSet", "metadata": job.objects[0]["metadata"], **fields}


def pod(job: PreparedEksJob, index: int, status: dict[str, Any]) -> dict[str, Any]:
    annotations = {"batch.kubernetes.io/job-completion-index": str(index)}
    metadata = {"labels": job.objects[0]["metadata"]["labels"], "annotations": annotations}
    return {"kind": "Pod", "metadata": metadata, "status": status}


def test_job_is_stored_and_its_objects_applied_in_the_order_of_their_use(
    jobs: KubernetesJobs, kubectl: Recorder, prepare: Prepare
) -> None:
    job = prepare()
    assert job.check() == []
    assert job.submit() == ()
    assert [one["kind"] for one in kubectl.applied] == ["ConfigMap", "JobSet"]
    (applied,) = [call for call in kubectl.calls if call.startswith("apply")]
    assert "--server-side" in applied
    assert "--context mine --namespace training" in applied
    assert jobs.store.job(job.job_id) == job.job


def test_refused_job_has_failed_with_the_message(jobs: KubernetesJobs, kubectl: Recorder, prepare: Prepare) -> None:
    job = prepare()
    kubectl.write("refusal", 'error: no matches for kind "JobSet"')
    with pytest.raises(RequestRefusedError, match="no matches for kind"):
        job.submit()
    state = jobs.state(job.job_id)
    assert state
    assert state.outcome
    assert "no matches for kind" in state.outcome.reason


@pytest.mark.parametrize(
    ("absent", "request_keys", "message"),
    [
        ("trn-job", {}, "kubectl create serviceaccount trn-job --namespace training"),
        ("team", {"queue": "team"}, "name an existing LocalQueue"),
        ("trn-priority-5", {"queue": "team", "priority": 5}, "create one with the value 5"),
    ],
)
def test_job_without_its_kubernetes_objects_is_not_started(
    kubectl: Recorder, prepare: Prepare, absent: str, request_keys: dict[str, Any], message: str
) -> None:
    kubectl.write(f"absent/{absent}")
    with pytest.raises(NotStartedError, match=message):
        prepare(**request_keys).check()


def test_cluster_without_jobset_is_reported_before_the_start(kubectl: Recorder, prepare: Prepare) -> None:
    kubectl.write("error", 'error: the server doesn\'t have a resource type "jobsets"')
    with pytest.raises(UnavailableError, match="resource type"):
        prepare().check()


def test_machine_without_kubectl_is_reported(prepare: Prepare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UnavailableError, match="kubectl is not in the PATH"):
        prepare().check()


@pytest.mark.parametrize(
    ("contexts", "expected"),
    [
        ({"a": "arn:aws:eks:us-west-2:1:cluster/prod"}, "a"),
        ({"a": "prod.us-west-2.eksctl.io"}, "a"),
        ({"a": "arn:aws:eks:us-west-2:1:cluster/prod", "now": "arn:aws:eks:us-west-2:2:cluster/prod"}, "now"),
        ({"a": "arn:aws:eks:us-east-1:1:cluster/prod"}, None),
        ({"a": "arn:aws:eks:us-west-2:1:cluster/not-prod"}, None),
    ],
)
def test_context_is_that_of_the_cluster(contexts: dict[str, str], expected: str | None) -> None:
    config = {
        "current-context": "now",
        "contexts": [{"name": name, "context": {"cluster": cluster}} for name, cluster in contexts.items()],
    }
    assert cluster_context(config, "prod", "us-west-2") == expected


def test_missing_context_names_the_command_that_creates_it(kubectl: Recorder) -> None:
    del kubectl
    with pytest.raises(UnavailableError, match="update-kubeconfig --region us-west-2 --name absent"):
        Kubectl("absent", "us-west-2", "default").items("pods", "a=b")


@pytest.mark.parametrize(
    ("spec", "status", "stage", "detail"),
    [
        ({"suspend": True}, {}, "queued", "suspended"),
        ({}, {}, "waiting for the nodes", "has not created the pods"),
        (
            {},
            {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2"}]},
            "waiting for the nodes",
            "the pod with index 1 does not run yet: Unschedulable: 0/2",
        ),
        (
            {},
            {"containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull", "message": "denied"}}}]},
            "waiting for the nodes",
            "ErrImagePull: denied",
        ),
        ({}, {"phase": "Running"}, "", ""),
    ],
)
def test_stage_says_what_the_job_waits_for(
    prepare: Prepare, spec: dict[str, Any], status: dict[str, Any], stage: str, detail: str
) -> None:
    job = prepare()
    pods = [pod(job, 0, {"phase": "Running"}), pod(job, 1, status)] if status else []
    state = set_states([job_set(job, spec=spec), *pods])[job.job_id]
    assert (state.stage, detail in state.detail) == (stage, True)


def test_job_whose_job_set_failed_without_a_report_has_failed(
    jobs: KubernetesJobs, kubectl: Recorder, prepare: Prepare
) -> None:
    job = prepare()
    job.submit()
    failed = {"conditions": [{"type": "Failed", "status": "True", "message": "exit code 137"}]}
    kubectl.items(job_set(job, status=failed))
    state = jobs.state(job.job_id)
    assert state
    assert state.outcome
    assert (state.outcome.result, "exit code 137" in state.outcome.reason) == ("failed", True)


@pytest.mark.parametrize(("age", "is_over"), [(timedelta(0), False), (timedelta(hours=1), True)])
def test_job_without_a_job_set_has_failed_unless_it_is_new(
    jobs: KubernetesJobs, prepare: Prepare, age: timedelta, *, is_over: bool
) -> None:
    job = prepare(now=datetime.now(UTC) - age)
    job.submit()
    state = jobs.state(job.job_id)
    assert state
    assert state.is_over == is_over


def test_unreadable_job_set_leaves_the_state_open(jobs: KubernetesJobs, kubectl: Recorder, prepare: Prepare) -> None:
    job = prepare()
    job.submit()
    kubectl.write("error", "Unauthorized")
    state = jobs.state(job.job_id)
    assert state
    assert (state.is_over, "Unauthorized" in state.detail) == (False, True)


@pytest.mark.parametrize("runs", [False, True])
def test_stopped_job_is_deleted_only_if_it_waits(
    jobs: KubernetesJobs, kubectl: Recorder, prepare: Prepare, *, runs: bool
) -> None:
    job = prepare()
    job.submit()
    kubectl.items(job_set(job), pod(job, 0, {"phase": "Running" if runs else "Pending"}))
    jobs.stop(job.job_id)
    assert any(call.startswith("delete jobset trn-train") for call in kubectl.calls) != runs
    assert jobs.store.has_ended(job.job_id) != runs


def test_upload_stores_what_applied_yaml_uses(jobs: KubernetesJobs, kubectl: Recorder, prepare: Prepare) -> None:
    job = prepare()
    job.upload()
    assert jobs.store.job(job.job_id) == job.job
    assert "kind: JobSet" in job.as_text
    assert not (Path(kubectl.__dict__["_folder"]) / "calls").exists()


def test_stack_without_eks_jobs_is_refused(jobs: KubernetesJobs) -> None:
    put_record(replace(stack_record("Other", engine="sagemaker", bucket=BUCKET), cluster="x"))
    with pytest.raises(JobError, match="a stack with EksJobs"):
        _ = KubernetesJobs(PLAN, "Other", jobs.clients).record
    with pytest.raises(NoStackError):
        _ = KubernetesJobs(PLAN, "Nowhere", jobs.clients).record


@pytest.mark.parametrize("key", ["framework", "training_plan", "warm_pool_minutes", "wake"])
def test_keys_of_other_engines_are_refused_by_name(jobs: KubernetesJobs, key: str) -> None:
    with pytest.raises(JobError, match=key):
        check_keys(jobs, {key: "1"}, {})


def test_plan_without_a_cluster_is_refused() -> None:
    assert the_problem(stacks="eks").key == "eks_cluster"


def test_type_with_gpus_is_refused() -> None:
    problem = the_problem(stacks="eks", eks_cluster="prod", instance_type="p5.48xlarge", region="us-east-1")
    assert problem.key == "instance_type"

"""Jobs on EKS, with S3 and CloudFormation in moto, and a stand-in for kubectl that records its calls."""

import json
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws

from tests.core.aws_stubs import client, create_bucket, put_record, stack_record
from tests.core.fake_kubectl import Recorder
from tests.core.job_bucket import BUCKET, JOB, NodesOfAJob
from tests.core.plans import from_settings, the_problem
from trainium_core.engines.eks.aws_jobs import KubernetesJobs, PreparedEksJob
from trainium_core.engines.eks.kubectl import Kubectl, cluster_context
from trainium_core.engines.eks.set_states import set_states
from trainium_core.jobs.engine import NoStackError, NotStartedError, StartUnknownError, check_keys
from trainium_core.jobs.problems import JobError
from trainium_core.jobs.progress import JobState
from trainium_core.jobs.request import JobRequest
from trainium_core.jobs.source_package import pack_source
from trainium_runtime.aws_service import Clients
from trainium_runtime.errors import RequestRefusedError, UnavailableError

pytestmark = pytest.mark.usefixtures("made_up_credentials")

PLACE = {"eks_cluster": "prod", "eks_namespace": "training"}
PLAN = from_settings(nodes=2, stacks="eks", eks_image="image:1", **PLACE)
STACK = "EksJobsStack"


@pytest.fixture
def jobs(kubectl: Recorder) -> Iterator[KubernetesJobs]:
    del kubectl
    with mock_aws():
        create_bucket(BUCKET)
        put_record(stack_record(STACK, engine="eks", bucket=BUCKET, settings=PLACE))
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
    for call in (call for call in kubectl.calls if call.startswith("apply")):
        assert "--server-side" in call
        assert "--context mine --namespace training" in call
    assert jobs.store.job(job.job_id) == job.job


def test_refused_job_has_failed_with_the_message(jobs: KubernetesJobs, kubectl: Recorder, prepare: Prepare) -> None:
    job = prepare()
    kubectl.refuse("JobSet", 'error: no matches for kind "JobSet"')
    with pytest.raises(RequestRefusedError, match="no matches for kind"):
        job.submit()
    state = jobs.state(job.job_id)
    assert state
    assert state.outcome
    assert "no matches for kind" in state.outcome.reason


UNANSWERED = "Error from server (Timeout): Timeout: request did not complete within requested timeout"


def test_unanswered_job_set_may_have_started(jobs: KubernetesJobs, kubectl: Recorder, prepare: Prepare) -> None:
    job = prepare()
    kubectl.refuse("JobSet", UNANSWERED)
    with pytest.raises(StartUnknownError, match="Timeout"):
        job.submit()
    assert not jobs.store.has_ended(job.job_id)


def test_kubectl_that_hangs_may_have_started_the_job(
    jobs: KubernetesJobs, prepare: Prepare, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = prepare()
    run = subprocess.run

    def hangs(arguments: list[str], **options: Any) -> Any:
        if '"kind": "JobSet"' in options["input"]:
            raise subprocess.TimeoutExpired(arguments, 60)
        return run(arguments, **options)

    monkeypatch.setattr(subprocess, "run", hangs)
    with pytest.raises(StartUnknownError, match="did not end within 60 seconds"):
        job.submit()
    assert not jobs.store.has_ended(job.job_id)


def test_no_job_set_is_applied_without_what_its_pods_use(
    jobs: KubernetesJobs, kubectl: Recorder, prepare: Prepare
) -> None:
    job = prepare()
    kubectl.refuse("ConfigMap", UNANSWERED)
    with pytest.raises(RequestRefusedError, match="Timeout"):
        job.submit()
    assert [one["kind"] for one in kubectl.applied] == ["ConfigMap"]
    assert jobs.store.has_ended(job.job_id)


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
        ({"a": "arn:aws:eks:us-west-2:1:cluster/prod", "now": "arn:aws:eks:us-west-2:1:cluster/prod"}, "now"),
        ({"a": "arn:aws:eks:us-west-2:1:cluster/prod", "now": "arn:aws:eks:us-west-2:2:cluster/prod"}, "a"),
        ({"a": "arn:aws:eks:us-west-2:2:cluster/prod"}, None),
        ({"a": "prod.us-west-2.eksctl.io"}, None),
        ({"a": "arn:aws:eks:us-east-1:1:cluster/prod"}, None),
        ({"a": "arn:aws:eks:us-west-2:1:cluster/not-prod"}, None),
    ],
)
def test_context_is_that_of_the_cluster(contexts: dict[str, str], expected: str | None) -> None:
    config = {
        "current-context": "now",
        "contexts": [{"name": name, "context": {"cluster": cluster}} for name, cluster in contexts.items()],
    }
    assert cluster_context(config, "prod", "us-west-2", "1") == expected


def test_missing_context_names_the_command_that_creates_it(kubectl: Recorder) -> None:
    del kubectl
    with pytest.raises(UnavailableError, match=r"of account 1: .*update-kubeconfig --region us-west-2 --name prod"):
        Kubectl("prod", "us-west-2", lambda: "1", "default").items("pods", "a=b")


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


@pytest.fixture
def uploaded(prepare: Prepare) -> PreparedEksJob:
    """A job whose YAML has not been applied in the hour since its upload."""
    job = prepare(now=datetime.now(UTC) - timedelta(hours=1))
    job.upload()
    return job


def test_job_whose_job_set_was_deleted_while_it_was_followed_has_failed(
    jobs: KubernetesJobs, kubectl: Recorder, uploaded: PreparedEksJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainium_core.jobs.aws_scheduled_jobs._ASK_SECONDS", -1)
    kubectl.items(job_set(uploaded))
    state = jobs.state(uploaded.job_id)
    assert state
    assert not state.is_over
    kubectl.items()
    state = jobs.state(uploaded.job_id)
    assert state
    assert state.outcome
    assert "Kubernetes no longer has this job" in state.outcome.reason


def test_uploaded_job_is_open_until_it_is_stopped(jobs: KubernetesJobs, uploaded: PreparedEksJob) -> None:
    state = jobs.state(uploaded.job_id)
    assert state
    assert (state.status, state.is_over, state.has_own_nodes) == ("not in Kubernetes", False, True)
    assert "apply the YAML" in state.detail
    jobs.stop(uploaded.job_id)
    state = jobs.state(uploaded.job_id)
    assert state
    assert state.status == "stopped"


def test_job_whose_job_set_was_deleted_after_its_start_has_failed(
    jobs: KubernetesJobs, uploaded: PreparedEksJob
) -> None:
    NodesOfAJob(client("s3"), uploaded.job).start()
    state = jobs.state(uploaded.job_id)
    assert state
    assert state.outcome
    assert (state.outcome.result, "Kubernetes no longer has this job" in state.outcome.reason) == ("failed", True)


def test_stopped_job_whose_pods_report_is_not_closed(jobs: KubernetesJobs, uploaded: PreparedEksJob) -> None:
    nodes = NodesOfAJob(client("s3"), uploaded.job)
    nodes.start()
    nodes.node(0, "running", at=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}")
    jobs.stop(uploaded.job_id)
    assert not jobs.store.has_ended(uploaded.job_id)


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


@pytest.mark.parametrize("waits", [False, True])
def test_job_set_of_an_ended_job_is_deleted_if_it_waits(
    jobs: KubernetesJobs, kubectl: Recorder, prepare: Prepare, *, waits: bool
) -> None:
    job = prepare(queue="team")
    job.submit()
    jobs.store.close(job.job_id, "a node was lost")
    kubectl.items(job_set(job, spec={"suspend": waits}), pod(job, 0, {"phase": "Running"}))
    jobs.stop_restarts(job.job_id)
    assert any(call.startswith("delete jobset trn-train") for call in kubectl.calls) == waits


@pytest.mark.parametrize(
    ("conditions", "detail"),
    [
        ([{"type": "QuotaReserved", "status": "False", "message": "insufficient quota"}], "insufficient quota"),
        ([], "see `kubectl describe workload --namespace training --selector kueue.x-k8s.io/job-uid=u-1`"),
        (None, "see `kubectl describe workload --namespace training --selector kueue.x-k8s.io/job-uid=u-1`"),
    ],
)
def test_queued_job_has_the_reason_of_kueue(
    jobs: KubernetesJobs, kubectl: Recorder, prepare: Prepare, conditions: list[dict[str, str]] | None, detail: str
) -> None:
    job = prepare(queue="team")
    job.submit()
    queued = job_set(job, spec={"suspend": True})
    kubectl.items({**queued, "metadata": {**queued["metadata"], "uid": "u-1"}})
    if conditions is not None:
        workload = {"metadata": {"labels": {"kueue.x-k8s.io/job-uid": "u-1"}}, "status": {"conditions": conditions}}
        kubectl.write("workloads", json.dumps({"items": [workload]}))
    state = jobs.state(job.job_id)
    assert state
    assert (state.status, state.detail) == ("queued", f"in Kueue's queue team: {detail}")
    assert kubectl.calls[-1].startswith("get workloads.kueue.x-k8s.io --selector kueue.x-k8s.io/job-uid in (u-1)")


@pytest.mark.usefixtures("uploaded")
def test_jobs_are_read_where_their_stack_runs_them(jobs: KubernetesJobs, kubectl: Recorder) -> None:
    elsewhere = from_settings(nodes=2, stacks="eks", eks_cluster="dev")
    KubernetesJobs(elsewhere, STACK, jobs.clients).newest(1)
    assert "--context mine --namespace training" in kubectl.calls[-1]


@pytest.mark.parametrize("key", ["eks_cluster", "eks_namespace", "eks_service_account"])
def test_job_for_another_place_than_the_deployed_one_is_refused(
    jobs: KubernetesJobs, prepare: Prepare, key: str
) -> None:
    deployed = PLACE.get(key, "trn-job")
    jobs.plan = from_settings(**{"nodes": 2, "stacks": "eks", **PLACE, key: "other"})
    with pytest.raises(JobError, match=rf"{key}: got 'other'\n    allowed: {deployed}, the value of {STACK}"):
        prepare()


def test_upload_stores_what_applied_yaml_uses(jobs: KubernetesJobs, kubectl: Recorder, prepare: Prepare) -> None:
    job = prepare()
    assert job.upload() == []
    assert job.job.submitted_by
    assert jobs.store.job(job.job_id) == job.job
    assert "kind: JobSet" in job.as_text
    assert not kubectl.calls


def test_stack_without_eks_jobs_is_refused(jobs: KubernetesJobs) -> None:
    put_record(replace(stack_record("Other", engine="sagemaker", bucket=BUCKET), cluster="x"))
    with pytest.raises(JobError, match="a stack of trn-pilot for --on eks"):
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


def test_list_price_of_nodes_that_a_node_group_buys_is_not_what_is_paid(jobs: KubernetesJobs) -> None:
    basis = jobs.price_basis(JobState(job=JOB, attempts=(), outcome=None))
    assert basis.purchase is None
    assert "the node group of the EKS cluster determines how nodes are bought" in basis.not_paid

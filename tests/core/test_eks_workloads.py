"""The JobSets that `trn destroy` deletes, with S3 and the record in moto, and a stand-in for kubectl."""

from collections.abc import Iterator
from typing import Any

import pytest
from moto import mock_aws

from tests.core.aws_stubs import client, create_bucket, put_record, stack_record
from tests.core.fake_kubectl import Recorder
from tests.core.job_bucket import BUCKET
from trainium_core.engines.eks.engine import EKS
from trainium_core.engines.parts import Workloads
from trainium_core.engines.sagemaker.engine import SageMaker
from trainium_core.stacks.description import StackDescription
from trainium_core.teardown.aws_account import AwsTeardown
from trainium_core.teardown.leftovers import Workload
from trainium_core.teardown.scope import Scope
from trainium_runtime.errors import UnavailableError

pytestmark = pytest.mark.usefixtures("made_up_credentials")

CLUSTER = "trn-pilot"
PLACE = "prod/training"


@pytest.fixture
def account(kubectl: Recorder) -> Iterator[AwsTeardown]:
    del kubectl
    with mock_aws():
        create_bucket(BUCKET)
        settings = {"eks_cluster": "prod", "eks_namespace": "training"}
        put_record(stack_record("EksJobsStack", engine="eks", bucket=BUCKET, settings=settings))
        yield AwsTeardown("us-west-2")


def submit() -> None:
    client("s3").put_object(Bucket=BUCKET, Key="submitted/one", Body=b"{}")


def one(kind: str, name: str, job: str, *, phase: str = "", deleted: bool = False, ended: bool = False) -> Any:
    deletion = {"deletionTimestamp": "2026-11-29T12:00:00Z"} if deleted else {}
    conditions = [{"type": "Completed", "status": "True"}] if ended else []
    metadata = {"name": name, "labels": {"trn/job": job, "trn/cluster": CLUSTER}, **deletion}
    return {"kind": kind, "metadata": metadata, "status": {"phase": phase, "conditions": conditions}}


def running(account: AwsTeardown) -> list[Workload]:
    return [*account.running_workloads(engines=["eks"], cluster=CLUSTER)]


def test_job_sets_that_have_not_ended_are_stopped(account: AwsTeardown, kubectl: Recorder) -> None:
    submit()
    kubectl.items(
        one("JobSet", "trn-runs", "runs"),
        one("Pod", "trn-runs-0", "runs", phase="Running"),
        one("JobSet", "trn-ends", "ends", deleted=True),
        one("JobSet", "trn-ended", "ended", ended=True),
        one("Pod", "trn-ended-0", "ended", phase="Succeeded"),
    )
    found = running(account)
    assert found == [
        Workload(kind="JobSet", work_id=f"{PLACE}:trn-runs"),
        Workload(kind="JobSet", work_id=f"{PLACE}:trn-ends", stopping=True),
    ]
    account.stop(found[0])
    assert kubectl.calls[-1].startswith("delete jobset trn-runs --ignore-not-found")
    assert "--context mine --namespace training" in kubectl.calls[-1]


def test_pods_of_a_deleted_job_set_are_awaited(account: AwsTeardown, kubectl: Recorder) -> None:
    submit()
    kubectl.items(one("Pod", "trn-gone-0", "gone", phase="Running"), one("Pod", "trn-gone-1", "gone", phase="Failed"))
    assert running(account) == [Workload(kind="ending pod", work_id=f"{PLACE}:trn-gone-0", stopping=True)]


def test_stack_that_never_had_a_job_needs_no_kubectl(account: AwsTeardown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert running(account) == []
    submit()
    with pytest.raises(UnavailableError, match="kubectl is not in the PATH"):
        running(account)


def test_stack_without_its_bucket_has_no_jobs(account: AwsTeardown) -> None:
    client("s3").delete_bucket(Bucket=BUCKET)
    assert running(account) == []


def test_jobs_of_eks_outlive_their_stack() -> None:
    stack = StackDescription(name=EKS.construct_id, stack_id="1", status="CREATE_COMPLETE", cluster="team")
    scope = Scope(cluster="team", existing=(stack,))
    assert (scope.engines_with_workloads, scope.has_outliving_workloads) == (("eks",), True)


def test_jobs_of_other_engines_are_found_although_kubectl_fails(
    account: AwsTeardown, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit()
    monkeypatch.setenv("PATH", "")
    work = Workload(kind="training job", work_id="trn-pilot--job")
    found = Workloads(running=lambda *_: [work], stop={}, resource_type="")
    monkeypatch.setattr(SageMaker, "workloads", lambda _: found)
    assert [*account.running_workloads(engines=["eks", "sagemaker"], cluster=CLUSTER)] == [work]


def test_running_nodes_are_counted_by_node_group_with_the_command_that_ends_them(account: AwsTeardown) -> None:
    assert account.outliving_nodes(CLUSTER) == []
    for number, cluster, group in ((2, CLUSTER, "One"), (1, CLUSTER, "Two"), (4, "other", "One")):
        tags = {"trn:cluster": cluster, "eks:cluster-name": "prod", "eks:nodegroup-name": group}
        client("ec2").run_instances(
            ImageId="ami-12c6146b",
            MinCount=number,
            MaxCount=number,
            TagSpecifications=[
                {"ResourceType": "instance", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}
            ],
        )
    one, two = account.outliving_nodes(CLUSTER)
    assert one.startswith("the EKS node group One runs 2 billed nodes")
    command = "aws eks update-nodegroup-config --region us-west-2 --cluster-name prod --nodegroup-name Two"
    assert two.startswith("the EKS node group Two runs 1 billed node;")
    assert two.endswith(f"{command} --scaling-config desiredSize=0")

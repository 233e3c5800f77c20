"""The report on nodes of EKS: instances in moto, and a stand-in for kubectl."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from tests.core.aws_stubs import client, create_bucket, put_record, stack_record
from tests.core.fake_kubectl import Recorder
from tests.core.job_bucket import BUCKET
from trainium_core.engines.eks.aws_nodes import node_state, node_status
from trainium_core.nodes.aws_nodes import AwsNodes
from trainium_core.nodes.report import NodesReport, NoFleetError
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.errors import UnavailableError

pytestmark = pytest.mark.usefixtures("made_up_credentials")

CLUSTER, STACK, BOOT = "trn-pilot", "EksJobsStack", "b-1"
AT = "2026-11-29T12:00:00Z"
TAINT = {"key": "trn/unverified", "value": "true", "effect": "NoSchedule"}
NEURON = {"key": "aws.amazon.com/neuron", "value": "true", "effect": "NoSchedule"}


def node(
    state: str | None, *, tainted: bool = True, boot: str | None = None, ready: str = "True", instance: str = "i-1"
) -> dict[str, Any]:
    annotations = {"trn/verification": state, "trn/verified-boot": boot}
    return {
        "metadata": {
            "creationTimestamp": AT,
            "annotations": {key: value for key, value in annotations.items() if value is not None},
        },
        "spec": {"providerID": f"aws:///us-west-2d/{instance}", "taints": [NEURON, *([TAINT] if tainted else [])]},
        "status": {
            "nodeInfo": {"bootID": BOOT},
            "conditions": [
                {"type": "Ready", "status": ready, "message": "no network plugin", "lastTransitionTime": AT}
            ],
        },
    }


@pytest.mark.parametrize(
    ("found", "state", "problem"),
    [
        (node("verified", tainted=False, boot=BOOT), "verified", ""),
        (node("failed: neuron-devices: 15 of 16"), "failed", "neuron-devices: 15 of 16"),
        (node(f"running since {AT}"), "booting", f"tainted: running since {AT}"),
        (node(None), "booting", "tainted: no pod of the DaemonSet verifies it yet"),
        (node("verified", tainted=False, boot="b-0"), "booting", "not verified since its last boot"),
        (node("verified", tainted=False, boot=BOOT, ready="False"), "not ready", "no network plugin"),
        (node(None, ready="Unknown"), "not ready", "no network plugin"),
        (node(None, tainted=False), "untested", "its node group has no NodeVerification"),
    ],
)
def test_state_of_a_node_follows_from_taint_annotations_and_boot(
    found: dict[str, Any], state: str, problem: str
) -> None:
    actual = node_state(found)
    assert actual[0] == state
    assert problem in actual[1]


@pytest.fixture
def account(kubectl: Recorder) -> Iterator[AwsNodes]:
    del kubectl
    with mock_aws():
        settings = {"eks_cluster": "prod", "eks_namespace": "training"}
        put_record(stack_record(STACK, engine="eks", settings=settings, group=None))
        topic = {"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}
        client("cloudformation").create_stack(StackName=STACK, TemplateBody=json.dumps(topic))
        yield AwsNodes("us-west-2")


def launch(number: int, *, eks_cluster: str = "prod") -> list[str]:
    tags = [{"Key": "trn:cluster", "Value": CLUSTER}, {"Key": "eks:cluster-name", "Value": eks_cluster}]
    made = client("ec2").run_instances(
        ImageId="ami-12c6146b",
        MinCount=number,
        MaxCount=number,
        TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
    )
    return sorted(each["InstanceId"] for each in made["Instances"])


def report(account: AwsNodes) -> NodesReport:
    with pytest.raises(NoFleetError):
        account.nodes(STACK)
    found = account.outside_nodes(STACK)
    assert found is not None
    return found


def test_nodes_are_ready_if_all_are_verified(account: AwsNodes, kubectl: Recorder) -> None:
    verified = [node("verified", tainted=False, boot=BOOT, instance=each) for each in launch(2)]
    kubectl.items(*verified)
    assert report(account).verdict.state == "ready"
    assert "--selector trn/cluster=trn-pilot" in kubectl.calls[-1]
    kubectl.items(*verified[:1])
    found = report(account)
    assert (found.verdict.state, found.verdict.reason) == ("waiting", "1 of 2 nodes verified")
    assert found.nodes[1].problem.startswith("not in Kubernetes")


def test_failed_node_is_named(account: AwsNodes, kubectl: Recorder) -> None:
    (instance,) = launch(1)
    kubectl.items(node("failed: efa: 0 of 8", instance=instance))
    found = report(account)
    assert (found.verdict.state, found.verdict.reason) == ("failed", f"failed: {instance}")
    assert found.nodes[0].problem == "efa: 0 of 8"


def test_only_existing_nodes_need_kubectl(account: AwsNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    found = report(account)
    assert (found.verdict.state, found.nodes) == ("ready", ())
    launch(1, eks_cluster="of others")
    assert report(account).nodes == ()
    launch(1)
    with pytest.raises(UnavailableError, match="kubectl is not in the PATH"):
        account.outside_nodes(STACK)


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (None, "not in Kubernetes"),
        (node("verified", tainted=False, boot=BOOT, ready="Unknown"), "no network plugin"),
        (node(None), "no pod of the DaemonSet"),
        (node("verified", tainted=False, boot="b-0"), "not verified since its last boot"),
    ],
    ids=["not joined", "not ready", "no pod", "no pod since the last boot"],
)
def test_silent_node_has_failed_after_half_an_hour_or_by_its_record(found: Any, problem: str) -> None:
    began = datetime(2026, 11, 29, 12, tzinfo=UTC)
    instance = {"InstanceId": "i-1", "State": {"Name": "running"}, "LaunchTime": began}
    early, late = began + timedelta(minutes=30), began + timedelta(minutes=31)
    assert node_status(instance, found, lambda _: "", early).state in ("booting", "not ready")
    status = node_status(instance, found, lambda _: "", late)
    assert status.state == "failed"
    assert problem in status.problem
    assert status.problem.endswith("(for 31 minutes)")
    recorded = node_status(instance, found, lambda _: "efa: 0 of 8", early)
    assert (recorded.state, recorded.problem) == ("failed", "efa: 0 of 8")


def test_node_that_waits_for_its_devices_does_not_fail_with_time() -> None:
    late = datetime(2030, 1, 1, tzinfo=UTC)
    instance = {"InstanceId": "i-1", "State": {"Name": "running"}, "LaunchTime": datetime(2026, 1, 1, tzinfo=UTC)}
    assert node_status(instance, node("waiting: a process uses a device"), lambda _: "old", late).state == "booting"


@pytest.mark.parametrize("began", ["2026-11-29T13:00:00Z", "2026-11-29T13:00:00Z, before a reboot"])
def test_node_that_is_tested_has_failed_after_an_hour(began: str) -> None:
    at = datetime(2026, 11, 29, 13, tzinfo=UTC)
    instance = {"InstanceId": "i-1", "State": {"Name": "running"}, "LaunchTime": datetime(2026, 1, 1, tzinfo=UTC)}
    found = node("running since 2026-11-29T13:00:00Z")
    if "reboot" in began:
        found = node("running since 2026-11-29T10:00:00Z")
        found["status"]["conditions"][0]["lastTransitionTime"] = "2026-11-29T13:00:00Z"
    assert node_status(instance, found, lambda _: "old", at + timedelta(minutes=60)).state == "booting"
    late = node_status(instance, found, lambda _: "old", at + timedelta(minutes=61))
    assert late.state == "failed"
    assert late.problem.startswith("tainted: running since 2026-11-29T1")
    assert late.problem.endswith("(for 61 minutes)")


def test_reason_is_read_from_the_bucket_that_the_instance_names(account: AwsNodes, kubectl: Recorder) -> None:
    first, second = launch(2)
    client("ec2").create_tags(Resources=[first], Tags=[{"Key": "trn:records", "Value": BUCKET}])
    client("ec2").create_tags(Resources=[second], Tags=[{"Key": "trn:records", "Value": "deleted"}])
    create_bucket(BUCKET)
    record = {"instance_id": first, "state": "failed", "reason": "neuron-devices: 15 of 16", "time": AT}
    key = f"nodes/AROA0123456789ABCDEF0:{first}.json"
    client("s3").put_object(Bucket=BUCKET, Key=key, Body=json.dumps(record))
    kubectl.items()
    found = report(account)
    assert found.verdict.reason == f"failed: {first}"
    assert [each.state for each in found.nodes] == ["failed", "booting"]
    assert found.nodes[0].problem == "neuron-devices: 15 of 16"
    assert "; its record could not be read: AWS answered NoSuchBucket: " in found.nodes[1].problem


def test_problem_names_the_missing_permission_to_read_the_record() -> None:
    denied = ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "ListObjectsV2")

    def failure_of(_: object) -> str:
        with read_errors("s3:ListBucket or s3:GetObject on the bucket records"):
            raise denied

    began = datetime(2026, 11, 29, 12, tzinfo=UTC)
    instance = {"InstanceId": "i-1", "State": {"Name": "running"}, "LaunchTime": began}
    late = node_status(instance, None, failure_of, began + timedelta(minutes=31))
    assert late.state == "failed"
    assert "(for 31 minutes); its record could not be read: not allowed to read: the permission s3:" in late.problem

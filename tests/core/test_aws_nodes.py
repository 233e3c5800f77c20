"""Calls about the nodes of a stack, against moto."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from moto import mock_aws

from tests.core.aws_stubs import REGION, client, create_bucket, create_stack, put_record, stack_record
from trainium_core.nodes.aws_nodes import AwsNodes
from trainium_runtime.aws_service import Clients
from trainium_runtime.errors import UnavailableError
from trainium_runtime.node_store import NodeStore
from trainium_wire.membership import Membership
from trainium_wire.metric_sample import MetricSample
from trainium_wire.node_record import NodeRecord
from trainium_wire.usage import NodeUsage

pytestmark = pytest.mark.usefixtures("made_up_credentials")

STACK, GROUP, BUCKET = "TrnClusterStack", "the-group", "the-records"


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsNodes]:
    monkeypatch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")  # Loading them takes seconds.
    with mock_aws():
        yield AwsNodes(REGION)


@pytest.fixture
def nodes(account: AwsNodes) -> list[str]:  # noqa: ARG001
    """Two instances of a group, of which the first has written its record."""
    ec2, scaling = client("ec2"), client("autoscaling")
    data = {"ImageId": "ami-0123456789abcdef0"}
    ec2.create_launch_template(LaunchTemplateName="node", LaunchTemplateData=data)
    scaling.create_auto_scaling_group(
        AutoScalingGroupName=GROUP,
        LaunchTemplate={"LaunchTemplateName": "node", "Version": "$Latest"},
        MinSize=0,
        MaxSize=2,
        DesiredCapacity=2,
        VPCZoneIdentifier=ec2.describe_subnets()["Subnets"][0]["SubnetId"],
    )
    (group,) = scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[GROUP])["AutoScalingGroups"]
    ids = sorted(instance["InstanceId"] for instance in group["Instances"])
    create_bucket(BUCKET)
    record = NodeRecord(instance_id=ids[0], state="verified", time="2026-11-21T12:00:00Z")
    client("s3").put_object(Bucket=BUCKET, Key=f"nodes/{ids[0]}.json", Body=record.to_json())
    put_record(stack_record(STACK, group=GROUP, bucket=BUCKET))
    return ids


def test_nodes_are_instances_of_the_group_with_their_records(account: AwsNodes, nodes: list[str]) -> None:
    found = account.nodes(STACK)
    assert found is not None
    assert found.wanted == 2
    assert [node.instance_id for node in found.instances] == nodes
    assert all(node.address and node.zone and node.launched and node.state == "running" for node in found.instances)
    assert {instance: stored.record.state for instance, stored in found.records.items()} == {nodes[0]: "verified"}
    assert found.membership == Membership()


def test_unhealthy_instance_is_leaving(account: AwsNodes, nodes: list[str]) -> None:
    client("autoscaling").set_instance_health(InstanceId=nodes[1], HealthStatus="Unhealthy")
    found = account.nodes(STACK)
    assert found is not None
    assert [node.leaving for node in found.instances] == [False, True]


def test_record_is_read_again_only_after_a_change(nodes: list[str]) -> None:
    s3 = client("s3")
    read: list[str] = []
    s3.meta.events.register("provide-client-params.s3.GetObject", lambda params, **_: read.append(params["Key"]))
    store = NodeStore(s3, BUCKET, "nodes")
    assert [list(store.records()) for _ in range(2)] == [nodes[:1]] * 2
    s3.put_object(Bucket=BUCKET, Key=f"nodes/{nodes[0]}.json", Body="changed")
    assert store.records()[nodes[0]].record.state == "failed"
    assert len(read) == 2
    s3.delete_object(Bucket=BUCKET, Key=f"nodes/{nodes[0]}.json")
    assert store.records() == {}


def test_nodes_of_another_stack_have_the_records_of_its_bucket(account: AwsNodes, nodes: list[str]) -> None:
    create_bucket("other-records")
    put_record(stack_record("OtherStack", cluster="other", group=GROUP, bucket="other-records"))
    first, other = account.nodes(STACK), account.nodes("OtherStack")
    assert first is not None
    assert other is not None
    assert (list(first.records), list(other.records)) == (nodes[:1], [])


def test_deleted_group_is_reported(account: AwsNodes) -> None:
    create_bucket(BUCKET)
    create_stack(STACK, {})
    put_record(stack_record(STACK, group="gone", bucket=BUCKET))
    says = "the Auto Scaling group gone does not exist, although the stack has one"
    with pytest.raises(UnavailableError, match=says):
        account.nodes(STACK)


def test_missing_stack_has_no_nodes(account: AwsNodes) -> None:
    assert account.nodes(STACK) is None


def test_stack_without_nodes_is_reported(account: AwsNodes) -> None:
    create_stack(STACK, {"Other": "x"})
    with pytest.raises(UnavailableError, match="has no nodes"):
        account.nodes(STACK)


def test_newer_record_of_a_renamed_construct_applies(account: AwsNodes, nodes: list[str]) -> None:
    create_bucket("new-records")
    put_record(stack_record(STACK, construct="ffffffff", group=GROUP, bucket="new-records"))
    found = account.nodes(STACK)
    assert found is not None
    assert (len(found.instances), dict(found.records)) == (len(nodes), {})


def test_records_are_read_once_with_the_same_clients(nodes: list[str]) -> None:
    clients, called = Clients(), list[str]()
    account, other = AwsNodes(REGION, clients=clients), AwsNodes(REGION, clients=clients)
    account.client("ssm").meta.events.register("before-call", lambda model, **_: called.append(model.name))
    assert account.nodes(STACK) == other.nodes(STACK)
    assert nodes
    assert called == ["GetParametersByPath"]


def test_newest_launch_template_version_is_read_and_a_deleted_template_has_none(account: AwsNodes) -> None:
    ec2 = client("ec2")
    data = {"InstanceType": "t3.micro"}
    made = ec2.create_launch_template(LaunchTemplateName="nodes", LaunchTemplateData=data)["LaunchTemplate"]
    template = made["LaunchTemplateId"]
    ec2.create_launch_template_version(LaunchTemplateId=template, LaunchTemplateData=data)
    assert account.newest_version(template) == 2
    ec2.delete_launch_template(LaunchTemplateId=template)
    assert account.newest_version(template) is None


def test_metrics_are_those_of_current_usage_reports(account: AwsNodes, nodes: list[str]) -> None:
    now = datetime.now(UTC)
    for instance, at in zip(nodes, (now, now - timedelta(hours=1)), strict=True):
        sample = MetricSample(at=at, core_utilization=80)
        report = NodeUsage(state="in-use", at=at, samples=(sample,)).to_json()
        client("s3").put_object(Bucket=BUCKET, Key=f"usage/{instance}.json", Body=report)
    found = account.nodes(STACK, with_metrics=True)
    assert found
    assert {name: metrics.core_utilization for name, metrics in found.metrics.items()} == {nodes[0]: 80}

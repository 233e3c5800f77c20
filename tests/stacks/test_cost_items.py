"""Every billed resource of the template has a line in the estimate; those billed by the hour, with the same count."""

from collections import Counter
from typing import Any

import pytest

from tests.constructs.synth import EXISTING_NETWORK, a_plan, cluster_template
from tests.stacks.variants import VARIANTS
from trainium_core.engines.ec2.costs import cost_items
from trainium_core.plan.settings.network import EGRESS

FREE = {
    "AWS::CDK::Metadata": "not a resource of AWS",
    "AWS::EC2::InternetGateway": "VPC: no charge; the data through it has a line",
    "AWS::EC2::PlacementGroup": "EC2: no charge",
    "AWS::EC2::Route": "VPC: no charge",
    "AWS::EC2::RouteTable": "VPC: no charge",
    "AWS::EC2::SecurityGroup": "VPC: no charge",
    "AWS::EC2::SecurityGroupEgress": "VPC: no charge",
    "AWS::EC2::SecurityGroupIngress": "VPC: no charge",
    "AWS::EC2::Subnet": "VPC: no charge",
    "AWS::EC2::SubnetRouteTableAssociation": "VPC: no charge",
    "AWS::EC2::VPC": "VPC: no charge",
    "AWS::EC2::VPCGatewayAttachment": "VPC: no charge",
    "AWS::Budgets::Budget": "AWS Budgets: no charge without budget actions",
    "AWS::EFS::MountTarget": "EFS: no charge in the zone of the nodes",
    "AWS::Events::Rule": "EventBridge: no charge for the events of AWS services",
    "AWS::IAM::InstanceProfile": "IAM: no charge",
    "AWS::IAM::Policy": "IAM: no charge",
    "AWS::IAM::Role": "IAM: no charge",
    "AWS::Lambda::Permission": "Lambda: no charge",
    "AWS::S3::BucketPolicy": "S3: the bucket is billed",
    "AWS::SNS::Subscription": "SNS: no charge, messages are few",
    "AWS::SNS::TopicPolicy": "SNS: no charge",
    "AWS::SSM::Parameter": "Systems Manager: no charge for standard parameters",
}
ALMOST_FREE = {
    "AWS::SNS::Topic": "a few messages a pilot; the first thousand e-mails of a month are free",
    "AWS::Scheduler::Schedule": "9,000 invocations a month of the 14 million that are free, for each of two",
    "AWS::Lambda::Function": "a few invocations for each deployment and node record; of a schedule, 9,000 a month",
    "AWS::Lambda::LayerVersion": "stored within the free 75 GB",
    "AWS::Logs::LogGroup": "a few lines a deployment, and 30 MB a month of metrics for each node",
}

NETWORKS: list[dict[str, Any]] = [*({"egress": egress} for egress in EGRESS), dict(EXISTING_NETWORK)]
ALARM = "AWS::CloudWatch::Alarm"
HOURLY = ["AWS::EC2::VPCEndpoint", "AWS::EC2::NatGateway", "AWS::EC2::EIP"]
PILOTS: list[dict[str, Any]] = [{"ends": "5d"}, {"job_notices": True}, {"budget_usd": 500, "budget_action": "stop"}]
FILE_SYSTEMS: list[dict[str, Any]] = [{"fsx_lustre": 1200}, {"efs": "new"}]


def billable(settings: dict[str, Any]) -> Counter[str]:
    """The number of resources of each type, without those that cost nothing or almost nothing."""
    found: Counter[str] = Counter()
    for resource in cluster_template(**settings).resources().values():
        kind = resource["Type"]
        # A gateway endpoint, which is what an omitted type means, costs nothing.
        gateway = kind == "AWS::EC2::VPCEndpoint" and resource["Properties"].get("VpcEndpointType") != "Interface"
        if not gateway and not kind.startswith("Custom::") and kind not in FREE | ALMOST_FREE:
            found[kind] += 1
    return found


@pytest.mark.parametrize("settings", [*NETWORKS, *FILE_SYSTEMS, *PILOTS], ids=str)
def test_billed_resources_and_estimate_lines_match(settings: dict[str, Any]) -> None:
    lines = {item.resource_type for item in cost_items(a_plan(**settings))}
    kinds = {resource["Type"] for resource in cluster_template(**settings).resources().values()}
    assert set(billable(settings)) <= lines
    assert lines <= kinds


@pytest.mark.parametrize("settings", VARIANTS.values(), ids=VARIANTS)
def test_every_billed_resource_of_the_variants_has_a_line(settings: dict[str, Any]) -> None:
    assert set(billable(settings)) <= {item.resource_type for item in cost_items(a_plan(**settings))}


@pytest.mark.parametrize("settings", NETWORKS, ids=str)
@pytest.mark.parametrize("kind", HOURLY)
def test_resources_billed_by_the_hour_are_counted(kind: str, settings: dict[str, Any]) -> None:
    items = cost_items(a_plan(**settings))
    counted = sum(item.quantity for item in items if item.resource_type == kind and item.billed == "running")
    assert counted == billable(settings)[kind]


@pytest.mark.parametrize("settings", [{}, *PILOTS, {"budget_usd": 500}], ids=str)
def test_alarms_are_counted(settings: dict[str, Any]) -> None:
    counted = sum(item.quantity for item in cost_items(a_plan(**settings)) if item.resource_type == ALARM)
    assert counted == billable(settings)[ALARM]


@pytest.mark.parametrize(
    ("settings", "metrics"),
    [
        ({"nodes": 2}, 14),  # 4 of each node and of the cluster, and 2 only of the cluster
        ({"nodes": 17}, 6),
        ({"nodes": 17, "cloudwatch_metrics": "nodes"}, 74),
        ({"cloudwatch_metrics": "none"}, 0),
    ],
    ids=str,
)
def test_metrics_are_counted_and_billed_while_nodes_run(settings: dict[str, Any], metrics: int) -> None:
    items = [item for item in cost_items(a_plan(**settings)) if item.item.product == "metric"]
    assert [(item.quantity, item.billed) for item in items] == ([(metrics, "running")] if metrics else [])


@pytest.mark.parametrize("settings", NETWORKS, ids=str)
def test_sleeping_cluster_has_no_egress_billed_by_the_hour(settings: dict[str, Any]) -> None:
    template = cluster_template(**settings)
    (awake,) = template.json["Conditions"]
    for name, resource in template.resources().items():
        free = resource["Properties"].get("VpcEndpointType") == "Gateway"
        if resource["Type"] in HOURLY and not free:
            assert resource["Condition"] == awake, name


def test_nodes_and_volumes_are_those_of_group_and_launch_template() -> None:
    template = cluster_template(nodes=3, root_volume_gib=600)
    quantities = {item.item.product: item.quantity for item in cost_items(a_plan(nodes=3, root_volume_gib=600))}
    (device,) = template.properties("AWS::EC2::LaunchTemplate")["LaunchTemplateData"]["BlockDeviceMappings"]
    assert int(template.properties("AWS::AutoScaling::AutoScalingGroup")["MaxSize"]) == quantities["on-demand"]
    assert device["Ebs"]["VolumeType"] == "gp3"
    assert 3 * device["Ebs"]["VolumeSize"] == quantities["gp3-storage"]
    assert 3 * (device["Ebs"]["Throughput"] - 125) == quantities["gp3-throughput"] * 1024
    assert device["Ebs"].keys().isdisjoint({"Iops", "VolumeInitializationRate"})  # These are billed in addition.

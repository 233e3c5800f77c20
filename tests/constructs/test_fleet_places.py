"""Fleets in a VPC that is not looked up yet, in a stack without region or with another cluster, and in others."""

from collections.abc import Callable
from inspect import signature
from typing import Any

import pytest
from aws_cdk import Duration, Environment, NestedStack, Size, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_elasticloadbalancingv2 as elbv2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from tests.constructs.synth import REGION, a_plan, new_app, synthesize
from trainium_cdk import (
    Budget,
    Capacity,
    ElasticFileSystem,
    LustreFileSystem,
    NeuronFleet,
    PcsCluster,
    PropsError,
    SageMakerTraining,
    SleepSwitch,
    TrainiumCluster,
)
from trainium_cdk.fleet.fleet_interface import MetricOptions
from trainium_core.engines.ec2.warnings import fleet_warnings

TYPE = ec2.InstanceType("trn1.32xlarge")
LUSTRE = Size.gibibytes(1200)
ZONE = ec2.SubnetSelection(availability_zones=["us-west-2b"])


def test_vpc_placeholder_of_a_pending_lookup_is_accepted() -> None:
    """Needed by `cdk bootstrap`, and by the first synthesis, after which the CLI looks up the VPC and synthesises
    again.
    """
    app, env = new_app(), Environment(account="111122223333", region=REGION)
    for name, props in {"Any": {}, "Zone": {"vpc_subnets": ZONE}, "Mounts": {"nodes": 99}}.items():
        stack = Stack(app, name, env=env)
        vpc = ec2.Vpc.from_lookup(stack, "Vpc", vpc_name="web")
        if name == "Mounts":
            props["file_systems"] = [ElasticFileSystem(stack, "Files", vpc=vpc, subnet=vpc.private_subnets[1])]
        NeuronFleet(stack, "Fleet", instance_type=TYPE, vpc=vpc, **props)


def test_subnet_that_is_imported_by_its_id_alone_is_used() -> None:
    stack = Stack(new_app(), "Web", env=Environment(region=REGION))
    vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2b"], nat_gateways=1)
    subnet = ec2.Subnet.from_subnet_id(stack, "Nodes", "subnet-0123456789abcdef0")
    NeuronFleet(stack, "Fleet", instance_type=TYPE, vpc=vpc, vpc_subnets=ec2.SubnetSelection(subnets=[subnet]))
    group = synthesize(stack).properties("AWS::AutoScaling::AutoScalingGroup")
    assert group["VPCZoneIdentifier"] == ["subnet-0123456789abcdef0"]


@pytest.mark.parametrize("kind", [ElasticFileSystem, LustreFileSystem])
def test_file_systems_role_and_target_group_may_be_of_another_stack(kind: Any) -> None:
    """The other stack outlives the nodes, so it must not depend on the stack of the nodes."""
    app = new_app()
    base, nodes = (Stack(app, name, env=Environment(region=REGION)) for name in ("Base", "Nodes"))
    vpc = ec2.Vpc(base, "Vpc", availability_zones=["us-west-2b"], nat_gateways=1)
    size: dict[str, Any] = {"size": Size.gibibytes(1200)} if kind is LustreFileSystem else {}
    files = kind(base, "Files", vpc=vpc, subnet=vpc.private_subnets[0], **size)
    ec2_service: Any = iam.ServicePrincipal("ec2.amazonaws.com")
    role = iam.Role(base, "Role", assumed_by=ec2_service)
    fleet = NeuronFleet(
        nodes,
        "Fleet",
        instance_type=TYPE,
        vpc=vpc,
        file_systems=[files],
        role=iam.Role.from_role_arn(nodes, "NodeRole", role.role_arn),
    )
    group = elbv2.NetworkTargetGroup(base, "Group", vpc=vpc, port=80)
    fleet.attach_to_network_target_group(group)
    assert synthesize(nodes).resources("AWS::IAM::Policy")
    assert nodes.dependencies == [base]
    assert base.dependencies == []


def test_looked_up_vpc_offers_its_private_subnets() -> None:
    subnets = [
        {"subnetId": f"subnet-{zone}", "cidr": "10.0.0.0/20", "availabilityZone": zone, "routeTableId": "rtb-1"}
        for zone in ("us-west-2a", "us-west-2b")
    ]
    app = new_app()
    app.node.set_context(
        f"vpc-provider:account=111122223333:filter.tag:Name=web:region={REGION}:returnAsymmetricSubnets=true",
        {"vpcId": "vpc-1", "subnetGroups": [{"name": "Private", "type": "Private", "subnets": subnets}]},
    )
    stack = Stack(app, "Web", env=Environment(account="111122223333", region=REGION))
    NeuronFleet(stack, "Fleet", instance_type=TYPE, vpc=ec2.Vpc.from_lookup(stack, "Vpc", vpc_name="web"))
    choice = synthesize(stack).properties("Custom::TrnNodeSubnet")
    assert choice["SubnetIds"] == ["subnet-us-west-2a", "subnet-us-west-2b"]
    entries = [entry for child in stack.node.find_all() for entry in child.node.metadata]
    warnings = [str(entry.data) for entry in entries if "warning" in entry.type]
    assert [warning for warning in warnings if not warning.endswith(("trn:image]", "trn:end]"))] == []


def test_reservation_of_two_fleets_is_named() -> None:
    app = new_app()
    one, two = (Stack(app, name, env=Environment(region=REGION)) for name in ("One", "Two"))
    fleets = [
        NeuronFleet(
            stack,
            "Fleet",
            instance_type=TYPE,
            vpc=ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2b"], nat_gateways=1),
            capacity=Capacity.capacity_block("cr-0123456789abcdef0"),
        )
        for stack in (one, two)
    ]
    text = "One/Fleet launches into cr-0123456789abcdef0 too"
    assert [[text in str(entry.data) for entry in fleet.node.metadata].count(True) for fleet in fleets] == [0, 1]


@pytest.mark.parametrize(("zone", "warnings"), [("us-west-2a", 1), ("us-west-2b", 0)])
def test_lustre_file_system_in_another_zone_is_named(zone: str, warnings: int) -> None:
    stack = Stack(new_app(), "Own", env=Environment(region=REGION))
    vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2a", "us-west-2b"], nat_gateways=1)
    (subnet,) = [subnet for subnet in vpc.private_subnets if subnet.availability_zone == zone]
    files = LustreFileSystem(stack, "Lustre", vpc=vpc, subnet=subnet, size=LUSTRE)
    fleet = NeuronFleet(stack, "Fleet", instance_type=TYPE, vpc=vpc, vpc_subnets=ZONE, file_systems=[files])
    text = "Own/Lustre in us-west-2a, and the nodes in us-west-2b: the traffic between zones is billed"
    assert len([entry for entry in fleet.node.metadata if text in str(entry.data)]) == warnings


def test_fleet_has_the_warnings_of_a_plan_with_the_same_values() -> None:
    stack = Stack(new_app(), "Own", env=Environment(region=REGION))
    vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2b"], nat_gateways=1)
    fleet = NeuronFleet(
        stack,
        "Fleet",
        instance_type=TYPE,
        nodes=2,
        vpc=vpc,
        capacity=Capacity.reservation("cr-0123456789abcdef0"),
        root_volume_size=Size.gibibytes(200),
        budget=Budget.usd(500, stop=True),
        idle_limit=Duration.minutes(60),
        file_systems=[LustreFileSystem(stack, "Lustre", vpc=vpc, subnet=vpc.private_subnets[0], size=LUSTRE)],
    )
    plan = a_plan(
        capacity="reservation",
        reservation_id="cr-0123456789abcdef0",
        root_volume_gib=200,
        budget_usd=500,
        budget_action="stop",
        idle_minutes=60,
        fsx_lustre=1200,
    )
    shown = [str(entry.data).rpartition(" [ack: trn:")[::2] for entry in fleet.node.metadata if "warning" in entry.type]
    expected = [text for _, text in fleet_warnings(plan)]
    assert [text for text, _ in shown] == expected
    assert [parameter.rstrip("]") for _, parameter in shown] == [
        "image",
        "file_systems",
        "budget",
        "root_volume_size",
        "end",
        "idle_limit",
    ]


def test_stack_without_region_chooses_subnet_and_checks_quota_at_deployment() -> None:
    stack = Stack(new_app(), "Any")
    NeuronFleet(stack, "Fleet", instance_type=TYPE, nodes=2, vpc=ec2.Vpc(stack, "Vpc", nat_gateways=1))
    template = synthesize(stack)
    assert template.properties("Custom::TrnQuotaCheck")["Region"] == {"Ref": "AWS::Region"}
    choice = template.properties("Custom::TrnNodeSubnet")
    assert choice["InstanceType"] == "trn1.32xlarge"
    assert [subnet["Ref"][:16] for subnet in choice["SubnetIds"]] == ["VpcPrivateSubnet"] * 2
    (chosen,) = template.properties("AWS::AutoScaling::AutoScalingGroup")["VPCZoneIdentifier"]
    assert chosen == {"Fn::GetAtt": [template.logical_id("Custom::TrnNodeSubnet"), "SubnetId"]}


def test_nested_stack_has_no_sleep_switch() -> None:
    stack = Stack(new_app(), "Web", env=Environment(region=REGION))
    nested = NestedStack(stack, "Nested")
    vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2b"], nat_gateways=1)
    NeuronFleet(nested, "Fleet", instance_type=TYPE, vpc=vpc)
    assert not [child for child in stack.node.find_all() if isinstance(child, SleepSwitch)]


def slurm(stack: Stack, name: str) -> object:
    settings: dict[str, Any] = {"stacks": ("pcs",), "pcs_ami": "ami-0123456789abcdef0", "ends": "40h"}
    return PcsCluster(stack, "Slurm", plan=a_plan(cluster_name=name, **settings))


def training(stack: Stack, name: str) -> object:
    return SageMakerTraining(stack, "Training", cluster_name=name)


def cluster(stack: Stack, name: str, construct_id: str = "Cluster") -> object:
    return TrainiumCluster(stack, construct_id, plan=a_plan(cluster_name=name))


def second_cluster(stack: Stack, name: str) -> object:
    return cluster(stack, name, "Second")


@pytest.mark.parametrize(
    ("first", "second", "name", "message"),
    [
        (cluster, second_cluster, "two", "Web/Second/Fleet: scope: got 'Web'; allowed: .* Web/Cluster/Fleet of .* one"),
        (cluster, slurm, "one", "Web/Slurm: scope: got 'Web'; allowed: .* Web/Cluster/Fleet of the cluster one"),
        (slurm, cluster, "one", "Web/Cluster/Fleet: scope: got 'Web'; .*; fix: create a stack for each cluster$"),
        (training, cluster, "two", "fix: create a stack for each cluster, or set cluster_name='one'"),
        (cluster, training, "two", "Web/Training: scope: got 'Web'; .* Web/Cluster/Fleet of the cluster one"),
    ],
)
def test_second_cluster_in_a_stack_is_refused(
    first: Callable[..., object], second: Callable[..., object], name: str, message: str
) -> None:
    stack = Stack(new_app(), "Web", env=Environment(region=REGION))
    first(stack, "one")
    with pytest.raises(PropsError, match=message):
        second(stack, name)


def test_key_of_a_fleet_encrypts_its_cache_and_its_records() -> None:
    stack = Stack(new_app(), "Own", env=Environment(region=REGION))
    vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2b"], nat_gateways=1)
    NeuronFleet(stack, "Fleet", instance_type=TYPE, vpc=vpc, encryption_key=kms.Key(stack, "Key"))
    template = synthesize(stack)
    buckets = template.resources("AWS::S3::Bucket").values()
    defaults = [bucket["Properties"]["BucketEncryption"]["ServerSideEncryptionConfiguration"] for bucket in buckets]
    key = {"Fn::GetAtt": [template.logical_id("AWS::KMS::Key"), "Arn"]}
    assert [rule["ServerSideEncryptionByDefault"]["KMSMasterKeyID"] for (rule,) in defaults] == [key] * 2


def test_metrics_take_the_options_of_the_cdk() -> None:
    own = {"self", "namespace", "metric_name", "dimensions_map"}
    assert MetricOptions.__annotations__.keys() == signature(cloudwatch.Metric.__init__).parameters.keys() - own

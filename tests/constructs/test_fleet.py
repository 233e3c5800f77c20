"""The fleet of a plan in a VPC that the test creates."""

import re
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from aws_cdk import RemovalPolicies, Stack
from aws_cdk import aws_ec2 as ec2

from tests.constructs.plans import RESERVATION, reserved
from tests.constructs.synth import (
    EXISTING_NETWORK,
    Json,
    Template,
    a_plan,
    as_list,
    as_text,
    cluster_template,
    granted,
    new_stack,
    synthesize,
)
from trainium_cdk.fleet.fleet_builder import PlannedFleet
from trainium_cdk.from_plan import plan_cache, plan_fleet
from trainium_core import Plan
from trainium_core.plan.settings_by_key import SETTINGS
from trainium_runtime.launch_template_version import REPLACING, RESOURCE_TYPE

GROUP, READINESS = "AWS::AutoScaling::AutoScalingGroup", "Custom::TrnFleetReadiness"
WRITTEN_BY_JOBS = ("attempts/*", "checkpoints/*", "end.json", "outputs/*")


def a_fleet(stack: Stack, vpc: ec2.IVpc, plan: Plan, **props: Any) -> PlannedFleet:
    network: Any = SimpleNamespace(vpc=vpc, subnet=vpc.private_subnets[0])
    planned = plan_fleet(plan, network=network, cache=plan_cache(stack, "Cache", plan), file_systems=[], sleep=None)
    return PlannedFleet(stack, "Fleet", props=replace(planned, **props))


@cache
def fleet(**settings: Any) -> Template:
    stack = new_stack()
    vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2d"])
    a_fleet(stack, vpc, a_plan(**settings))
    return synthesize(stack)


def script_asset(template: Template) -> str:
    """Bucket and key of the script that sets up a node."""
    document = as_text(template.properties("AWS::EC2::LaunchTemplate")["LaunchTemplateData"]["UserData"])
    (location,) = re.findall(r"TRN_NODE_SCRIPT_URL=s3://(\S+)", document)
    return location


def group(**settings: Any) -> Json:
    return fleet(**settings).properties(GROUP)


def offered(**settings: Any) -> Json:
    """The properties that decide the version for new nodes."""
    properties = fleet(**settings).properties(RESOURCE_TYPE)
    return {name: properties[name] for name in (*REPLACING, "ImageSetting")}


@pytest.mark.parametrize("nodes", [1, 1000])
def test_group_has_bounds_and_no_size(nodes: int) -> None:
    template = fleet(nodes=nodes, secondary_interface_type="efa-only")
    properties = template.properties(GROUP)
    assert (properties["MinSize"], properties["MaxSize"]) == ("0", str(nodes))
    assert "DesiredCapacity" not in properties
    assert template.properties(READINESS)["Nodes"] == str(nodes)


def test_nodes_are_launched_from_the_selected_version() -> None:
    template = fleet()
    chosen, name = template.logical_id(RESOURCE_TYPE), template.logical_id("AWS::EC2::LaunchTemplate")
    assert group()["LaunchTemplate"] == {
        "LaunchTemplateId": {"Ref": name},
        "Version": {"Fn::GetAtt": [chosen, "Version"]},
    }
    assert template.properties(RESOURCE_TYPE)["LatestVersion"] == {"Fn::GetAtt": [name, "LatestVersionNumber"]}


@pytest.mark.parametrize(
    "settings",
    [{"suppress_checks": ("efa-devices",)}, {"verification": "observe"}, {"node_recovery": False}],
    ids=str,
)
def test_change_without_effect_on_nodes_offers_an_equal_version(settings: dict[str, Any]) -> None:
    assert offered(**settings) == offered()


REPLACING_NODES: dict[str, dict[str, Any]] = {
    "instance_type": {"instance_type": "trn1n.32xlarge"},
    "capacity": {"capacity": "spot"},
    "reservation_id": {"capacity": "reservation", "reservation_id": "cr-0123456789abcdef0"},
    "root_volume_gib": {"root_volume_gib": 600},
    "root_volume_throughput": {"root_volume_throughput": 600},
    "root_volume_initialization": {"root_volume_initialization": 200},
    "root_device_name": {"root_device_name": "/dev/xvda"},
    "logical_neuroncore_config": {"logical_neuroncore_config": 1},
    "secondary_interface_type": {"secondary_interface_type": "efa-only"},
    "cache_access": {"cache_bucket": "my-cache", "cache_access": "read"},
    "neuron_software": {"neuron_software": "install", "ami": "ami-0123456789abcdef0", "egress": "nat-gateway"},
    "internode_ssh": {"internode_ssh": True},
    "metrics_port": {"metrics_port": 9400},
    "node_generation": {"node_generation": 2},
    "setup_script": {"setup_script": "echo"},
}


def test_every_setting_that_replaces_nodes_has_a_case() -> None:
    of_slurm = {"pcs_ami"}
    assert REPLACING_NODES.keys() | of_slurm == {key for key, one in SETTINGS.items() if one.replaces_nodes}


@pytest.mark.parametrize("key", REPLACING_NODES)
def test_change_that_requires_new_nodes_offers_another_version(key: str) -> None:
    settings = offered(**REPLACING_NODES[key])["Settings"]
    assert settings.get(key) != offered()["Settings"].get(key)


def test_changed_cluster_name_offers_another_version() -> None:
    """Running instances keep their tag trn:cluster."""
    assert offered(cluster_name="renamed")["Settings"] != offered()["Settings"]


def test_nodes_may_read_the_script_of_their_version() -> None:
    template = fleet()
    chosen = template.logical_id(RESOURCE_TYPE)
    statements = [
        statement
        for name, policy in template.resources("AWS::IAM::Policy").items()
        if name.startswith("FleetRole")
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    ]
    assert {"Fn::GetAtt": [chosen, "NodeScript"]} in [arn for s in statements for arn in as_list(s["Resource"])]
    assert as_text(template.properties(RESOURCE_TYPE)["NodeScript"]) == f"arn:aws:s3:::{script_asset(template)}"


@pytest.mark.parametrize(
    "resource_type",
    [
        "AWS::IAM::InstanceProfile",
        "AWS::EC2::SecurityGroupIngress",
        "AWS::EC2::SecurityGroupEgress",
        "AWS::S3::BucketPolicy",
        "AWS::EC2::Route",
        "AWS::EC2::SubnetRouteTableAssociation",
    ],
)
def test_nodes_depend_on_the_resources_that_they_need_at_boot(resource_type: str) -> None:
    template = fleet()
    of_fleet = {name for name in template.resources(resource_type) if "PublicSubnet" not in name}
    assert of_fleet
    assert of_fleet <= template.before(template.logical_id(GROUP))


def test_nodes_depend_on_their_permissions() -> None:
    template = fleet()
    (policy,) = [name for name in template.resources("AWS::IAM::Policy") if name.startswith("FleetRole")]
    assert policy in template.before(template.logical_id(GROUP))


def test_nodes_are_terminated_before_their_buckets_are_emptied() -> None:
    template = fleet()
    contents = set(template.resources("Custom::TrnBucketContent"))
    assert len(contents) == 2
    assert contents <= template.before(template.logical_id(GROUP))


def test_nodes_are_verified_after_everything_else_is_created() -> None:
    template = fleet()
    readiness = template.logical_id(READINESS)
    assert template.logical_id(GROUP) in template.before(readiness)
    assert not [name for name in template.resources() if readiness in template.before(name)]


def test_nodes_may_only_hold_sessions_use_the_cache_report_and_run_jobs() -> None:
    template = fleet()
    (policy,) = [p for name, p in template.resources("AWS::IAM::Policy").items() if name.startswith("FleetRole")]
    cache, records = (
        next(name for name in template.resources("AWS::S3::Bucket") if part in name) for part in ("Cache", "Records")
    )
    statements = policy["Properties"]["PolicyDocument"]["Statement"]
    assert granted(statements) == {
        ("ssm:UpdateInstanceInformation", "*"),
        ("ssmmessages:CreateControlChannel", "*"),
        ("ssmmessages:CreateDataChannel", "*"),
        ("ssmmessages:OpenControlChannel", "*"),
        ("ssmmessages:OpenDataChannel", "*"),
        ("s3:DeleteObject", f"${{{cache}.Arn}}/neuron-compile-cache/direct/*"),
        ("s3:GetObject", f"${{{cache}.Arn}}/neuron-compile-cache/*"),
        ("s3:PutObject", f"${{{cache}.Arn}}/neuron-compile-cache/*"),
        ("s3:ListBucket", f"${{{cache}.Arn}}"),
        ("s3:PutObject", f"${{{records}.Arn}}/nodes/${{aws:userid}}.json"),
        ("s3:PutObject", f"${{{records}.Arn}}/logs/${{aws:userid}}.log"),
        ("s3:PutObject", f"${{{records}.Arn}}/usage/${{aws:userid}}.json"),
        ("s3:GetObject", f"${{{records}.Arn}}/cluster.json"),
        ("s3:GetObject", f"${{{records}.Arn}}/job.json"),
        ("s3:GetObject", f"${{{records}.Arn}}/jobs/*"),
        ("s3:GetObject", f"${{{records}.Arn}}/inputs/*"),
        *(("s3:PutObject", f"${{{records}.Arn}}/jobs/*/{name}") for name in WRITTEN_BY_JOBS),
        ("s3:GetObject", f"${{{records}.Arn}}/internode/*"),
        ("s3:PutObject", f"${{{records}.Arn}}/internode/*"),
        ("s3:ListBucket", f"${{{records}.Arn}}"),
        ("s3:GetObject", f"${{{template.logical_id(RESOURCE_TYPE)}.NodeScript}}"),
    }
    (role,) = [role["Properties"] for name, role in template.resources("AWS::IAM::Role").items() if "Role" in name[:9]]
    assert not {"ManagedPolicyArns", "Policies"} & set(role)


@pytest.mark.parametrize("capacity", ["on-demand", "spot"])
def test_efa_nodes_are_in_a_cluster_placement_group(capacity: str) -> None:
    template = fleet(capacity=capacity)
    assert template.properties("AWS::EC2::PlacementGroup")["Strategy"] == "cluster"
    data = template.properties("AWS::EC2::LaunchTemplate")["LaunchTemplateData"]
    name = template.logical_id("AWS::EC2::PlacementGroup")
    assert data["Placement"] == {"GroupName": {"Fn::GetAtt": [name, "GroupName"]}}


@pytest.mark.parametrize(
    "settings",
    [
        {"capacity": "capacity-block", **reserved("capacity-block")},
        {"capacity": "reservation", **reserved("reservation")},
        {"instance_type": "trn1.2xlarge", "nodes": 1},
    ],
    ids=["capacity-block", "reservation", "without EFA"],
)
def test_reservations_and_nodes_without_efa_get_no_placement_group(settings: dict[str, Any]) -> None:
    template = fleet(**settings)
    assert not template.resources("AWS::EC2::PlacementGroup")
    assert "Placement" not in template.properties("AWS::EC2::LaunchTemplate")["LaunchTemplateData"]


def test_existing_placement_group_is_used() -> None:
    template = fleet(placement_group="ours", capacity="reservation", reservation_id=RESERVATION)
    assert not template.resources("AWS::EC2::PlacementGroup")
    data = template.properties("AWS::EC2::LaunchTemplate")["LaunchTemplateData"]
    assert data["Placement"] == {"GroupName": "ours"}


def test_controller_and_not_cloudformation_replaces_nodes() -> None:
    template = fleet()
    (group,) = template.resources(GROUP).values()
    assert "UpdatePolicy" not in group
    launched, readiness = group["Properties"]["LaunchTemplate"], template.properties(READINESS)
    assert readiness["LaunchTemplateId"] == launched["LaunchTemplateId"]
    assert readiness["LaunchTemplateVersion"] == launched["Version"]
    assert [readiness["SubnetId"]] == group["Properties"]["VPCZoneIdentifier"]


def test_nodes_that_would_outlive_their_stack_are_refused() -> None:
    stack = new_stack()
    a_fleet(stack, ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2d"]), a_plan())
    RemovalPolicies.of(stack).retain(apply_to_resource_types=["AWS::S3::Bucket"])
    assert synthesize(stack).resources(GROUP)
    retained = new_stack()
    a_fleet(retained, ec2.Vpc(retained, "Vpc", availability_zones=["us-west-2d"]), a_plan())
    RemovalPolicies.of(retained).retain()
    with pytest.raises(RuntimeError, match="its nodes would run, and be billed, after the stack is deleted"):
        synthesize(retained)


def test_changed_generation_is_another_launch_template_version() -> None:
    before, after = (fleet(node_generation=number).properties("AWS::EC2::LaunchTemplate") for number in (1, 2))
    assert before != after
    assert before["LaunchTemplateData"] == after["LaunchTemplateData"]


def test_every_interface_has_the_efa_group_and_added_groups() -> None:
    stack = new_stack()
    vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2d"])
    ours = ec2.SecurityGroup.from_security_group_id(stack, "Ours", "sg-0123456789abcdef0")
    a_fleet(stack, vpc, a_plan(), security_groups=[ours])
    template = synthesize(stack)
    own = {"Fn::GetAtt": [template.logical_id("AWS::EC2::SecurityGroup"), "GroupId"]}
    interfaces = template.properties("AWS::EC2::LaunchTemplate")["LaunchTemplateData"]["NetworkInterfaces"]
    assert [interface["Groups"] for interface in interfaces] == [[own, "sg-0123456789abcdef0"]] * 8


@pytest.mark.parametrize(
    ("settings", "replacements"), [({}, 2), ({"node_replacements": 5}, 5), ({"node_recovery": False}, 0)], ids=str
)
def test_controller_has_the_replacement_limit_of_the_plan(settings: dict[str, Any], replacements: int) -> None:
    template = fleet(**settings)
    (limit,) = [
        function["Properties"]["Environment"]["Variables"]["REPLACEMENTS"]
        for function in template.resources("AWS::Lambda::Function").values()
        if "Environment" in function["Properties"]
    ]
    assert limit == str(replacements)


@pytest.mark.parametrize(
    ("settings", "ports"),
    [({}, {443}), ({"neuron_software": "install", "ami": "ami-0123456789abcdef0"}, {80, 443})],
    ids=["nothing", "packages"],
)
def test_http_egress_in_existing_vpc_is_open_only_for_downloads(settings: Json, ports: set[int]) -> None:
    template = cluster_template(**EXISTING_NETWORK, **settings, dns_servers=("10.1.0.2",))
    (group,) = template.resources("AWS::EC2::SecurityGroup").values()
    rules = group["Properties"]["SecurityGroupEgress"]
    assert {rule["FromPort"] for rule in rules if rule["CidrIp"] == "0.0.0.0/0"} == ports
    assert {rule["CidrIp"] for rule in rules if rule["FromPort"] == 53} == {"10.1.0.2/32"}


def test_only_the_named_group_reaches_the_port_of_the_metrics() -> None:
    settings = {"metrics_port": 9400, "metrics_security_group": "sg-0123456789abcdef0"}
    rules = cluster_template(**settings).resources("AWS::EC2::SecurityGroupIngress")
    without = cluster_template(metrics_port=9400).resources("AWS::EC2::SecurityGroupIngress")
    (name,) = rules.keys() - without.keys()
    opened = rules[name]["Properties"]
    assert (opened["SourceSecurityGroupId"], opened["IpProtocol"]) == ("sg-0123456789abcdef0", "tcp")
    assert opened["FromPort"] == opened["ToPort"] == 9400

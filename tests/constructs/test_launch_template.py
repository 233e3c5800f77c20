"""Launch templates for plans of every kind, because AWS refuses invalid ones only at launch."""

from types import SimpleNamespace
from typing import Any

import pytest
from aws_cdk import Size, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from hypothesis import given, settings

from tests.constructs.plans import RESERVATION, plans
from tests.constructs.synth import Json, Template, a_plan, new_stack, synthesize
from trainium_cdk import (
    Capacity,
    EfaSecurityGroup,
    NeuronLaunchTemplate,
    NodeImage,
)
from trainium_cdk.fleet.launch_template import LaunchTemplateProps, NodeLaunchTemplate, launch_market_type
from trainium_cdk.fleet.node_image import node_image_id
from trainium_cdk.from_plan import plan_fleet
from trainium_core import Plan

USER_DATA = "#!/bin/bash\necho node\n"


def template_of(plan: Plan) -> Template:
    """The CloudFormation template of only a launch template, with two existing security groups."""
    stack = new_stack()
    ids = ("sg-0000000000000000a", "sg-0000000000000000b")
    groups = [ec2.SecurityGroup.from_security_group_id(stack, name, name) for name in ids]
    profile = iam.InstanceProfile.from_instance_profile_name(stack, "Profile", "node")
    NodeLaunchTemplate(stack, "Template", props=of_plan(stack, plan, groups, profile))
    return synthesize(stack)


def of_plan(stack: Stack, plan: Plan, groups: Any, profile: iam.IInstanceProfile, **arguments: Any) -> Any:
    nowhere: Any = SimpleNamespace(vpc=None, subnet=None)
    fleet = plan_fleet(plan, network=nowhere, cache=nowhere, file_systems=[], sleep=None)
    of_fleet = {name: getattr(fleet, name) for name in ("node", "capacity", "root_volume", "tags")}
    props = {"image_id": node_image_id(stack, fleet.image, plan.type), "user_data": USER_DATA, **of_fleet, **arguments}
    return LaunchTemplateProps(
        security_groups=groups, instance_profile=profile, market_type=launch_market_type(fleet.capacity), **props
    )


def data_of(plan: Plan) -> Json:
    return template_of(plan).properties("AWS::EC2::LaunchTemplate")["LaunchTemplateData"]


@given(plan=plans())
@settings(max_examples=40)
def test_launch_template_of_any_plan_is_valid(plan: Plan) -> None:
    data = data_of(plan)
    interfaces = data["NetworkInterfaces"]
    assert [interface["NetworkCardIndex"] for interface in interfaces] == list(range(max(plan.type.efa_interfaces, 1)))
    further = 0 if plan.network.secondary_interface_type == "efa-only" else 1
    assert [interface["DeviceIndex"] for interface in interfaces] == [0] + [further] * (len(interfaces) - 1)
    assert all(interface["Groups"] == ["sg-0000000000000000a", "sg-0000000000000000b"] for interface in interfaces)
    assert all(interface["DeleteOnTermination"] is True for interface in interfaces)
    types = [interface.get("InterfaceType") for interface in interfaces]
    assert types[0] == ("efa" if plan.uses_efa else None)
    assert set(types[1:]) <= {plan.network.secondary_interface_type}
    public = [interface.get("AssociatePublicIpAddress") for interface in interfaces]
    assert public == ([False] if len(interfaces) == 1 else [None] * len(interfaces))
    assert not {"SecurityGroupIds", "SecurityGroups", "KeyName"} & set(data)
    market = data.get("InstanceMarketOptions", {}).get("MarketType")
    assert market == (plan.capacity if plan.capacity in ("spot", "capacity-block") else None)
    target = data.get("CapacityReservationSpecification", {}).get("CapacityReservationTarget", {})
    assert target.get("CapacityReservationId") == plan.reservation_id
    assert data["InstanceType"] == plan.instance_type


def test_metadata_requires_tokens_and_is_reachable_from_containers() -> None:
    assert data_of(a_plan())["MetadataOptions"] == {
        "HttpEndpoint": "enabled",
        "HttpTokens": "required",
        "HttpPutResponseHopLimit": 2,
    }


def test_root_volume_is_encrypted_gp3_of_the_planned_size() -> None:
    assert data_of(a_plan(root_volume_gib=700, root_device_name="/dev/xvda"))["BlockDeviceMappings"] == [
        {
            "DeviceName": "/dev/xvda",
            "Ebs": {
                "VolumeSize": 700,
                "VolumeType": "gp3",
                "Throughput": 500,
                "Encrypted": True,
                "DeleteOnTermination": True,
            },
        }
    ]


@pytest.mark.parametrize("resource_type", ["instance", "volume", "network-interface"])
def test_launched_resources_are_tagged(resource_type: str) -> None:
    specifications = data_of(a_plan(tags={"team": "ml"}))["TagSpecifications"]
    (tags,) = [spec["Tags"] for spec in specifications if spec["ResourceType"] == resource_type]
    assert {tag["Key"]: tag["Value"] for tag in tags} == {
        "team": "ml",
        "trn:cluster": "trn-pilot",
        "Name": "trn-pilot-node",
    }


def test_image_is_resolved_from_ssm_parameter_at_deployment() -> None:
    name = "/aws/service/neuron/dlami/multi-framework/ubuntu-24.04/latest/image_id"
    template = template_of(a_plan(ami=name))
    parameter = template.properties("AWS::EC2::LaunchTemplate")["LaunchTemplateData"]["ImageId"]["Ref"]
    assert template.json["Parameters"][parameter] == {
        "Type": "AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>",
        "Default": name,
    }


def test_parameters_and_equal_plan_make_the_same_template() -> None:
    stack = new_stack()
    vpc = ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id="vpc-0123456789abcdef0", availability_zones=["a"])
    groups = [EfaSecurityGroup(stack, "Group", vpc=vpc)]
    profile = iam.InstanceProfile.from_instance_profile_name(stack, "Profile", "node")
    user_data = ec2.UserData.for_linux()
    user_data.add_commands("echo node")
    NeuronLaunchTemplate(
        stack,
        "Direct",
        instance_type=ec2.InstanceType("trn1.32xlarge"),
        capacity=Capacity.reservation(RESERVATION),
        security_groups=groups,
        instance_profile=profile,
        user_data=user_data,
        cluster_name="own",
        placement_group=ec2.PlacementGroup.from_placement_group_name(stack, "Close", "close"),
        secondary_interface_type="efa-only",
        image=NodeImage.custom(
            ec2.MachineImage.generic_linux({"us-west-2": "ami-0123456789abcdef0"}), root_device_name="/dev/xvda"
        ),
        root_volume_size=Size.gibibytes(700),
        root_volume_throughput=125,
        root_volume_initialization_rate=300,
    )
    plan = a_plan(
        capacity="reservation",
        reservation_id=RESERVATION,
        cluster_name="own",
        secondary_interface_type="efa-only",
        ami="ami-0123456789abcdef0",
        root_device_name="/dev/xvda",
        root_volume_gib=700,
        root_volume_throughput=125,
        root_volume_initialization=300,
    )
    named = {"user_data": "#!/bin/bash\necho node", "placement_group_name": "close"}
    NodeLaunchTemplate(stack, "Planned", props=of_plan(stack, plan, groups, profile, **named))
    direct, planned = synthesize(stack).resources("AWS::EC2::LaunchTemplate").values()
    assert direct["Properties"] == planned["Properties"]

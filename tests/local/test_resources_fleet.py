"""Launch templates, placement groups and Auto Scaling groups, as EC2 and Auto Scaling show them."""

from typing import Any

import pytest

from tests.local.conftest import EmbeddedAws
from tests.local.ec2_network import NEURON_IMAGE
from tests.local.stacks import Stacks
from tests.local.stacks import template as any_template
from tests.local.test_resources_network import network, resource

SMALL_TYPE = "trn1.2xlarge"  # Eight vCPUs, so that many instances fit into the seeded quota.
CARDS = 8  # Network cards of trn1.32xlarge.


def template(resources: dict[str, Any]) -> dict[str, Any]:
    image = {"Type": "AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>", "Default": NEURON_IMAGE}
    return any_template(resources, Parameters={"Image": image})


@pytest.fixture
def stacks(embedded_aws: EmbeddedAws) -> Stacks:
    return Stacks(embedded_aws)


def interfaces(cards: int) -> list[dict[str, Any]]:
    return [
        {
            "NetworkCardIndex": card,
            "DeviceIndex": 0 if card == 0 else 1,
            "InterfaceType": "efa" if card == 0 else "efa-only",
            "SubnetId": {"Ref": "S"},
            "Groups": [{"Fn::GetAtt": ["G", "GroupId"]}],
            "DeleteOnTermination": True,
        }
        for card in range(cards)
    ]


def fleet(nodes: int = 2, *, instance_type: str = SMALL_TYPE, user_data: str = "x", **group: Any) -> dict[str, Any]:
    data: dict[str, Any] = {
        "ImageId": {"Ref": "Image"},
        "InstanceType": instance_type,
        "UserData": {"Fn::Base64": user_data},
    }
    if instance_type != SMALL_TYPE:
        data |= {"NetworkInterfaces": interfaces(CARDS), "Placement": {"GroupName": {"Ref": "P"}}}
    launched = {"LaunchTemplateId": {"Ref": "L"}, "Version": {"Fn::GetAtt": ["L", "LatestVersionNumber"]}}
    sizes = {"MinSize": str(nodes), "MaxSize": str(nodes), "DesiredCapacity": str(nodes)}
    policy = group.pop("UpdatePolicy", {})
    return network(
        G=resource("SecurityGroup", GroupDescription="g", VpcId={"Ref": "V"}),
        P=resource("PlacementGroup", Strategy="cluster"),
        L=resource("LaunchTemplate", LaunchTemplateData=data),
        F={
            "Type": "AWS::AutoScaling::AutoScalingGroup",
            "Properties": {**sizes, "LaunchTemplate": launched, "VPCZoneIdentifier": [{"Ref": "S"}], **group},
            "UpdatePolicy": policy,
        },
    )


def instances(stacks: Stacks, name: str) -> list[dict[str, Any]]:
    group = stacks.physical_id(name, "F")
    found = stacks.aws.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[group])
    ids = [instance["InstanceId"] for instance in found["AutoScalingGroups"][0]["Instances"]]
    if not ids:
        return []
    reservations = stacks.aws.client("ec2").describe_instances(InstanceIds=ids)["Reservations"]
    return [instance for reservation in reservations for instance in reservation["Instances"]]


def test_group_nodes_have_an_interface_on_each_card(stacks: Stacks) -> None:
    name = stacks.deploy(template(fleet(1, instance_type="trn1.32xlarge")))
    (node,) = instances(stacks, name)
    found = sorted((one["Attachment"]["NetworkCardIndex"], one["InterfaceType"]) for one in node["NetworkInterfaces"])
    assert found == [(0, "efa"), *((card, "efa-only") for card in range(1, CARDS))]
    assert node["Placement"]["GroupName"] == stacks.physical_id(name, "P")
    assert stacks.delete(name) == "DELETE_COMPLETE"


def test_resized_group_gives_instances_its_tags_and_those_of_the_stack(stacks: Stacks) -> None:
    own = [{"Key": "own", "Value": "1", "PropagateAtLaunch": True}]
    of_stack = [{"Key": "trn:cluster", "Value": "c"}]
    name = stacks.deploy(template(fleet(2, Tags=own)), Tags=of_stack)
    for nodes in (4, 1):
        assert stacks.update(name, template(fleet(nodes, Tags=own)), Tags=of_stack) == "UPDATE_COMPLETE"
        found = instances(stacks, name)
        assert len(found) == nodes
        for node in found:
            tags = {tag["Key"]: tag["Value"] for tag in node["Tags"]}
            assert {"own": "1", "trn:cluster": "c"}.items() <= tags.items()


def test_launch_template_tags_change_in_place(stacks: Stacks) -> None:
    def tagged(**tags: str) -> dict[str, Any]:
        resources = fleet(1)
        pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
        resources["L"]["Properties"]["TagSpecifications"] = [{"ResourceType": "launch-template", "Tags": pairs}]
        return template(resources)

    name = stacks.deploy(tagged(team="ml", gone="soon"))
    assert stacks.update(name, tagged(team="research")) == "UPDATE_COMPLETE", stacks.failures(name)
    of_template = [{"Name": "resource-id", "Values": [stacks.physical_id(name, "L")]}]
    tags = stacks.aws.client("ec2").describe_tags(Filters=of_template)["Tags"]
    assert {tag["Key"]: tag["Value"] for tag in tags if not tag["Key"].startswith("aws:")} == {"team": "research"}


def test_scheduled_sizes_stay_if_update_policy_requires(stacks: Stacks) -> None:
    policy = {"AutoScalingScheduledAction": {"IgnoreUnmodifiedGroupSizeProperties": True}}
    name = stacks.deploy(template(fleet(2, UpdatePolicy=policy)))
    stacks.aws.client("autoscaling").update_auto_scaling_group(
        AutoScalingGroupName=stacks.physical_id(name, "F"), MinSize=0, DesiredCapacity=0
    )
    stacks.update(name, template(fleet(2, HealthCheckGracePeriod=10, UpdatePolicy=policy)))
    assert instances(stacks, name) == []


def test_group_with_missing_target_group_is_rolled_back(stacks: Stacks) -> None:
    arn = "arn:aws:elasticloadbalancing:us-west-2:123456789012:targetgroup/no/50dc6c495c0c9188"
    name = stacks.create(template(fleet(1, TargetGroupARNs=[arn])))
    assert stacks.settled(name) == "ROLLBACK_COMPLETE"
    assert "target groups not found" in stacks.failures(name)


def test_new_template_version_keeps_the_nodes(stacks: Stacks) -> None:
    name = stacks.deploy(template(fleet(2)))
    before, launch_template = {node["InstanceId"] for node in instances(stacks, name)}, stacks.physical_id(name, "L")
    assert stacks.update(name, template(fleet(2, user_data="y"))) == "UPDATE_COMPLETE", stacks.failures(name)
    described = stacks.aws.client("ec2").describe_launch_templates(LaunchTemplateIds=[launch_template])
    assert [one["LatestVersionNumber"] for one in described["LaunchTemplates"]] == [2]
    assert {node["InstanceId"] for node in instances(stacks, name)} == before


def test_target_group_is_attached_and_detached(stacks: Stacks) -> None:
    target = {"VpcId": {"Ref": "V"}, "Port": 80, "Protocol": "HTTP", "TargetType": "instance"}
    group = {"Type": "AWS::ElasticLoadBalancingV2::TargetGroup", "Properties": target}

    def attached(name: str) -> list[str]:
        found = stacks.aws.client("autoscaling").describe_auto_scaling_groups(
            AutoScalingGroupNames=[stacks.physical_id(name, "F")]
        )
        return found["AutoScalingGroups"][0]["TargetGroupARNs"]

    name = stacks.deploy(template({**fleet(1, TargetGroupARNs=[{"Ref": "Targets"}]), "Targets": group}))
    assert attached(name) == [stacks.physical_id(name, "Targets")]
    assert stacks.update(name, template({**fleet(1), "Targets": group})) == "UPDATE_COMPLETE", stacks.failures(name)
    assert attached(name) == []
    assert stacks.delete(name) == "DELETE_COMPLETE"


def test_deleted_fleet_leaves_no_instance_template_placement_group_or_interface(stacks: Stacks) -> None:
    ec2 = stacks.aws.client("ec2")

    def left() -> tuple[int, ...]:
        running = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
        return (
            len(ec2.describe_instances(Filters=running)["Reservations"]),
            len(ec2.describe_launch_templates()["LaunchTemplates"]),
            len(ec2.describe_placement_groups()["PlacementGroups"]),
            len(ec2.describe_network_interfaces()["NetworkInterfaces"]),
        )

    before = left()
    name = stacks.deploy(template(fleet(2)))
    assert left() != before
    assert stacks.delete(name) == "DELETE_COMPLETE"
    assert left() == before

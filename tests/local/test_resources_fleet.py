"""Launch templates, placement groups and Auto Scaling groups, as EC2 shows them."""

from typing import Any

import pytest

from tests.local.conftest import EmbeddedAws
from tests.local.ec2_network import end_instances
from tests.local.stacks import Stacks, template
from tests.local.test_resources_network import network, resource

AMI = "{{resolve:ssm:/aws/service/neuron/dlami/pytorch-2.9/ubuntu-24.04/latest/image_id}}"
FEW_CORES = "trn1.2xlarge"  # Eight vCPUs, so that many fit into the seeded quota.
CARDS = 8  # Network cards of trn1.32xlarge.


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


def fleet(nodes: int = 2, *, instance_type: str = FEW_CORES, user_data: str = "x", **group: Any) -> dict[str, Any]:
    data: dict[str, Any] = {"ImageId": AMI, "InstanceType": instance_type, "UserData": {"Fn::Base64": user_data}}
    if instance_type != FEW_CORES:
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


def test_resized_group_tags_instances_with_its_and_the_stack_tags(stacks: Stacks) -> None:
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
        given = [{"Key": key, "Value": value} for key, value in tags.items()]
        specification = {"ResourceType": "launch-template", "Tags": given}
        resources["L"]["Properties"]["TagSpecifications"] = [specification]
        return template(resources)

    name = stacks.deploy(tagged(team="ml", gone="soon"))
    assert stacks.update(name, tagged(team="research")) == "UPDATE_COMPLETE", stacks.failures(name)
    of_template = [{"Name": "resource-id", "Values": [stacks.physical_id(name, "L")]}]
    tags = stacks.aws.client("ec2").describe_tags(Filters=of_template)["Tags"]
    assert {tag["Key"]: tag["Value"] for tag in tags if not tag["Key"].startswith("aws:")} == {"team": "research"}


@pytest.mark.parametrize(("policy", "replaced"), [({}, False), ({"AutoScalingRollingUpdate": {}}, True)])
def test_new_template_version_replaces_nodes_if_update_policy_requires(
    stacks: Stacks, policy: dict[str, Any], replaced: bool
) -> None:
    name = stacks.deploy(template(fleet(2, UpdatePolicy=policy)))
    before, launch_template = {node["InstanceId"] for node in instances(stacks, name)}, stacks.physical_id(name, "L")
    stacks.update(name, template(fleet(2, user_data="y", UpdatePolicy=policy)))
    (shown,) = stacks.aws.client("ec2").describe_launch_templates(LaunchTemplateIds=[launch_template])[
        "LaunchTemplates"
    ]
    assert (shown["LatestVersionNumber"], stacks.physical_id(name, "L")) == (2, launch_template)
    after = {node["InstanceId"] for node in instances(stacks, name)}
    assert len(after) == 2
    assert (not before & after) is replaced


def test_rolling_update_fits_into_quota_of_old_nodes(stacks: Stacks) -> None:
    end_instances(stacks.aws.client("ec2"), stacks.aws.client("autoscaling"))
    policy = {"AutoScalingRollingUpdate": {"MaxBatchSize": "2", "MinInstancesInService": "0"}}
    all_of_the_quota: dict[str, Any] = {"nodes": 2, "instance_type": "trn1.32xlarge", "UpdatePolicy": policy}
    name = stacks.deploy(template(fleet(**all_of_the_quota)))
    before = {node["InstanceId"] for node in instances(stacks, name)}
    stacks.update(name, template(fleet(**all_of_the_quota, user_data="y")))
    after = {node["InstanceId"] for node in instances(stacks, name)}
    assert (len(before), len(after), before & after) == (2, 2, set())
    stacks.delete(name)


def test_replacing_update_creates_a_new_group(stacks: Stacks) -> None:
    policy = {"AutoScalingReplacingUpdate": {"WillReplace": True}}
    name = stacks.deploy(template(fleet(1, UpdatePolicy=policy)))
    before = stacks.physical_id(name, "F")
    stacks.update(name, template(fleet(1, user_data="y", UpdatePolicy=policy)))
    assert stacks.physical_id(name, "F") != before


def test_scheduled_sizes_stay_if_update_policy_requires(stacks: Stacks) -> None:
    policy = {"AutoScalingScheduledAction": {"IgnoreUnmodifiedGroupSizeProperties": True}}
    name = stacks.deploy(template(fleet(2, UpdatePolicy=policy)))
    stacks.aws.client("autoscaling").update_auto_scaling_group(
        AutoScalingGroupName=stacks.physical_id(name, "F"), MinSize=0, DesiredCapacity=0
    )
    stacks.update(name, template(fleet(2, HealthCheckGracePeriod=10, UpdatePolicy=policy)))
    assert instances(stacks, name) == []


def test_refused_group_leaves_nothing(stacks: Stacks) -> None:
    arn = "arn:aws:elasticloadbalancing:us-west-2:123456789012:targetgroup/no/50dc6c495c0c9188"
    name = stacks.create(template(fleet(1, TargetGroupARNs=[arn])))
    assert stacks.settled(name) == "ROLLBACK_COMPLETE"
    assert "target groups not found" in stacks.failures(name)


def test_hooks_and_target_groups_are_added_and_removed(stacks: Stacks) -> None:
    hook = {"LifecycleHookName": "h", "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING"}
    balancers = stacks.aws.client("elbv2")
    vpc = stacks.aws.client("ec2").describe_vpcs()["Vpcs"][0]["VpcId"]
    made = balancers.create_target_group(Name="t", Protocol="HTTP", Port=80, VpcId=vpc)["TargetGroups"]
    target = made[0]["TargetGroupArn"]
    name = stacks.deploy(template(fleet(1, LifecycleHookSpecificationList=[hook])))
    api, group = stacks.aws.client("autoscaling"), stacks.physical_id(name, "F")
    assert [
        one["LifecycleHookName"] for one in api.describe_lifecycle_hooks(AutoScalingGroupName=group)["LifecycleHooks"]
    ]
    assert stacks.update(name, template(fleet(1, TargetGroupARNs=[target]))) == "UPDATE_COMPLETE", stacks.failures(name)
    assert api.describe_lifecycle_hooks(AutoScalingGroupName=group)["LifecycleHooks"] == []
    (shown,) = api.describe_auto_scaling_groups(AutoScalingGroupNames=[group])["AutoScalingGroups"]
    assert shown["TargetGroupARNs"] == [target]
    assert stacks.delete(name) == "DELETE_COMPLETE"


def test_deleted_fleet_leaves_nothing(stacks: Stacks) -> None:
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

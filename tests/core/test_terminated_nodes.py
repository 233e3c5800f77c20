"""How many running nodes a change set would terminate."""

import json
from dataclasses import replace
from typing import Any

import pytest

from trainium_core.nodes.terminated_nodes import terminated_nodes
from trainium_core.stacks.change_sets import ChangedProperty, ResourceChange
from trainium_runtime.launch_template_version import RESOURCE_TYPE, choose

IMAGE = "ami-0aaaaaaaaaaaaaaaa"
OFFER = {
    "LaunchTemplateId": "lt-0123456789abcdef0",
    "LatestVersion": "1",
    "Image": IMAGE,
    "ImageSetting": "",
    "NodeScript": "arn:aws:s3:::assets/one.sh",
    "Settings": {"instance_type": "trn1.32xlarge"},
    "Uses": {},
}
GROUP = ResourceChange(kind="AWS::AutoScaling::AutoScalingGroup", action="Modify")
NODE_GROUP = ResourceChange(kind="AWS::PCS::ComputeNodeGroup", action="Modify")
READINESS = ResourceChange(kind="Custom::TrnFleetReadiness", action="Modify")
UNKNOWN = ChangedProperty()
LOGIN = replace(NODE_GROUP, logical_id="SlurmLoginGroup1A2B3C4D")
LOGIN_TEMPLATE = ResourceChange(kind="AWS::EC2::LaunchTemplate", action="Modify", logical_id="Login")
RECREATED = ChangedProperty(certain=True, recreates=True)


def version(**after: Any) -> ResourceChange:
    """A change of the launch template version. `after`: new values of properties."""
    properties = {name: ChangedProperty(after=value) for name, value in after.items()}
    physical_id = choose(OFFER, None)[1]
    return ResourceChange(kind=RESOURCE_TYPE, action="Modify", physical_id=physical_id, properties=properties)


def of(change: ResourceChange, **properties: ChangedProperty) -> ResourceChange:
    return replace(change, properties=properties)


@pytest.mark.parametrize(
    "changes",
    [
        [of(GROUP, LaunchTemplate=UNKNOWN), version(LatestVersion=None)],
        [version(LatestVersion=None, Image="ami-0bbbbbbbbbbbbbbbb")],
        [version(ImageSetting=IMAGE)],
        [version(Uses=None), ResourceChange(kind="AWS::EC2::SecurityGroup", action="Modify")],
        [of(NODE_GROUP, ScalingConfiguration=UNKNOWN)],
        [of(READINESS, Nodes=ChangedProperty(after="4")), of(GROUP, MaxSize=ChangedProperty(after="4"))],
    ],
    ids=["tag", "newer image", "pinned", "tag of a security group", "more nodes of PCS", "more nodes"],
)
def test_nodes_that_stay_are_not_counted(changes: list[ResourceChange]) -> None:
    assert terminated_nodes(changes, running=2).count == 0


@pytest.mark.parametrize(
    "changes",
    [
        [replace(LOGIN, action="Remove")],
        [of(LOGIN, NodeLifecycleActions=ChangedProperty(certain=True))],
        [LOGIN_TEMPLATE, of(LOGIN, CustomLaunchTemplate=ChangedProperty(causes=frozenset({"Login"})))],
        [of(replace(LOGIN, replacement="True"), Name=RECREATED, InstanceConfigs=RECREATED)],
    ],
    ids=["removed", "script", "template", "type"],
)
def test_update_of_the_login_group_replaces_only_the_login_node(changes: list[ResourceChange]) -> None:
    ending = terminated_nodes(changes, running=3)
    assert (ending.count, ending.template_changes) == (1, False)
    assert "files on it, such as those in /home, are lost" in ending.reasons[0]
    assert "trn:efs=new" in ending.reasons[0]


def test_tag_keeps_the_login_node() -> None:
    subnet = ResourceChange(kind="AWS::EC2::Subnet", action="Modify", logical_id="Subnet")
    tagged = of(LOGIN, Tags=UNKNOWN, SubnetIds=ChangedProperty(causes=frozenset({"Subnet"})))
    assert terminated_nodes([subnet, tagged], running=3).count == 0


@pytest.mark.parametrize(
    ("kind", "name"), [("AWS::PCS::Cluster", "Size"), ("AWS::PCS::ComputeNodeGroup", "InstanceConfigs")]
)
def test_replacement_under_the_same_name_is_refused(kind: str, name: str) -> None:
    change = ResourceChange(kind=kind, action="Modify", replacement="True", properties={name: RECREATED})
    refused = terminated_nodes([change], running=1).refused
    assert refused.startswith(f"{name} of {kind} cannot change")
    assert "trn:cluster_name" in refused
    renamed = replace(change, properties={**change.properties, "Name": RECREATED})
    assert terminated_nodes([renamed], running=1).refused == ""


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ([version(ImageSetting="ami-0bbbbbbbbbbbbbbbb", Image="ami-0bbbbbbbbbbbbbbbb")], "they boot another image"),
        ([version(ImageSetting="/my/image")], "they boot another image"),
        (
            [version(Uses=None), ResourceChange(kind="AWS::EC2::SecurityGroup", action="Modify", replacement="True")],
            "they will use new resources: AWS::EC2::SecurityGroup",
        ),
        ([of(GROUP, VPCZoneIdentifier=UNKNOWN)], "they move to another subnet"),
        ([replace(GROUP, action="Remove")], "their Auto Scaling group is removed"),
        (
            [of(replace(NODE_GROUP, replacement="True"), ClusterId=UNKNOWN)],
            "their compute node group is replaced, since ClusterId cannot change",
        ),
    ],
)
def test_terminated_nodes_are_counted_with_the_reason(changes: list[ResourceChange], reason: str) -> None:
    ending = terminated_nodes(changes, running=2)
    assert (ending.count, ending.reasons) == (2, (reason,))


@pytest.mark.parametrize(("name", "count"), [("LaunchTemplate", 0), ("AutoScalingGroupName", 2)])
def test_conditional_replacement_counts_by_the_changed_property(name: str, count: int) -> None:
    changed = replace(GROUP, replacement="Conditional", properties={name: ChangedProperty()})
    assert terminated_nodes([changed], running=2).count == count


def a_change(kind: str, logical_id: str, *, replacement: str = "False", **causes: str) -> ResourceChange:
    """A changed resource. `causes`: by property, the resource that may change it and so replace this one."""
    properties = {name: ChangedProperty(causes=frozenset({cause}), recreates=True) for name, cause in causes.items()}
    return ResourceChange(
        kind=kind, action="Modify", logical_id=logical_id, replacement=replacement, properties=properties
    )


@pytest.mark.parametrize(("replacement", "count"), [("False", 0), ("True", 2)])
def test_reference_to_security_group_changes_only_with_its_replacement(replacement: str, count: int) -> None:
    """When a tag of a security group changes, CloudFormation shows every reference to the group as possibly changed."""
    lustre = a_change("AWS::FSx::FileSystem", "Lustre", replacement="Conditional", SecurityGroupIds="Security")
    uses = ChangedProperty(causes=frozenset({"Security", "Lustre"}))
    changes = [
        a_change("AWS::EC2::SecurityGroup", "Security", replacement=replacement),
        lustre,
        of(version(), Uses=uses),
    ]
    assert terminated_nodes(changes, running=2).count == count


def test_subnet_from_reevaluated_function_replaces_nodes() -> None:
    subnets = ChangedProperty(causes=frozenset({"Choice"}), recreates=True)
    group = of(replace(GROUP, replacement="Conditional"), VPCZoneIdentifier=subnets)
    chosen = [a_change("AWS::EC2::Subnet", "Choice"), a_change("Custom::TrnNodeSubnet", "Choice")]
    assert [terminated_nodes([group, choice], running=2).count for choice in chosen] == [0, 2]


def test_settings_that_require_new_nodes_are_named() -> None:
    before, after = OFFER["Settings"], {"instance_type": "trn1.32xlarge", "root_volume_gib": "600"}
    shown = ChangedProperty(before=json.dumps(before), after=json.dumps(after))
    ending = terminated_nodes([of(version(), Settings=shown)], running=2)
    assert ending.reasons == ("a setting that requires new nodes has changed: trn:root_volume_gib",)
    assert "see `cdk diff`" in terminated_nodes([version(Settings=None)], running=2).reasons[0]
    of_a_part = ChangedProperty(before="512", after="600", certain=True)
    assert "see `cdk diff`" in terminated_nodes([of(version(), Settings=of_a_part)], running=2).reasons[0]


@pytest.mark.parametrize(
    ("before", "after", "keys"),
    [
        ({"cache_url": "s3://a/x"}, {"cache_url": "s3://b/x"}, "cache_url"),
        ({"cache_url": "s3://a/x", "lustre": "fs-1"}, {"cache_url": "s3://a/x"}, "lustre"),
    ],
    ids=["another existing bucket", "without a file system"],
)
def test_changed_dependency_terminates_nodes(before: dict[str, str], after: dict[str, str], keys: str) -> None:
    shown = ChangedProperty(before=json.dumps(before), after=json.dumps(after), certain=True)
    removed = ResourceChange(kind="AWS::FSx::FileSystem", action="Remove")
    ending = terminated_nodes([of(version(), Uses=shown), removed], running=2)
    assert (ending.count, ending.reasons) == (2, (f"their resources have changed: {keys}",))
    of_a_part = terminated_nodes([of(version(), Uses=ChangedProperty(before="s3://a/x", certain=True))], running=2)
    assert of_a_part.reasons == ("their resources have changed: see `cdk diff`",)


def test_reduced_node_count_terminates_the_surplus() -> None:
    changes = [of(READINESS, Nodes=ChangedProperty(after="1")), of(GROUP, MaxSize=ChangedProperty(after="1"))]
    assert (terminated_nodes(changes, running=3).count, terminated_nodes(changes, running=1).count) == (2, 0)

"""ElasticFileSystem and LustreFileSystem in an existing network: resources, access and removal."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import pytest
from aws_cdk import RemovalPolicy, Size, Stack
from aws_cdk import aws_ec2 as ec2

from tests.constructs.synth import Json, Template, as_text, new_stack, synthesize
from trainium_cdk import ElasticFileSystem, LustreFileSystem
from trainium_cdk.storage.node_file_system import NodeFileSystem
from trainium_userdata.locations import NodeLocations

SUBNET_ID, GROUP_ID, EXISTING = "subnet-0123456789abcdef0", "sg-0123456789abcdef0", "fs-0123456789abcdef0"
NFS, LUSTRE = {(2049, 2049)}, {(988, 988), (1018, 1023)}

Placed = tuple[Template, Mapping[str, str]]
"""A template, and the locations that nodes get."""


def placed(make: Callable[[Stack, ec2.IVpc, ec2.ISubnet], NodeFileSystem]) -> Placed:
    """A file system, with the security group of nodes that may reach it."""
    stack = new_stack()
    vpc = ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id="vpc-0123456789abcdef0", availability_zones=["any"])
    subnet = ec2.Subnet.from_subnet_attributes(stack, "Subnet", subnet_id=SUBNET_ID, route_table_id="rtb-1")
    file_system = make(stack, vpc, subnet)
    file_system.allow(ec2.SecurityGroup(stack, "Nodes", vpc=vpc, allow_all_outbound=False))
    places = file_system.added_to(
        NodeLocations(region="us-west-2", cache_url="s3://cache", report_url="s3://records", node_script_url="s3://x")
    )
    shown = {name: as_text(stack.resolve(value)) for name, value in vars(places).items() if value is not None}
    return synthesize(stack), shown


@cache
def new_efs() -> Placed:
    return placed(lambda stack, vpc, subnet: ElasticFileSystem(stack, "Files", vpc=vpc, subnet=subnet))


@cache
def new_lustre(**props: Any) -> Placed:
    arguments: dict[str, Any] = {"size": Size.gibibytes(4800), **props}
    return placed(lambda stack, vpc, subnet: LustreFileSystem(stack, "Files", vpc=vpc, subnet=subnet, **arguments))


@cache
def existing_efs() -> Placed:
    return placed(
        lambda stack, _vpc, _subnet: ElasticFileSystem.from_elastic_file_system_attributes(
            stack, "Files", file_system_id=EXISTING, security_group_id=GROUP_ID
        )
    )


@cache
def existing_lustre() -> Placed:
    return placed(
        lambda stack, _vpc, _subnet: LustreFileSystem.from_lustre_file_system_attributes(
            stack, "Files", file_system_id=EXISTING, mount_name="abcdefgh", security_group_id=GROUP_ID
        )
    )


def group(template: Template, name: str) -> str:
    """The logical ID of a security group, by its prefix."""
    (logical_id,) = (i for i in template.resources("AWS::EC2::SecurityGroup") if i.startswith(name))
    return logical_id


def group_id(template: Template, name: str) -> Json:
    return {"Fn::GetAtt": [group(template, name), "GroupId"]}


def let_in(template: Template, to: Any, source: Any) -> set[tuple[int, int]]:
    """The TCP ports of a security group that are open to another one."""
    return _opened(template, "Ingress", to, SourceSecurityGroupId=source)


def let_out(template: Template, source: Any, to: Any) -> set[tuple[int, int]]:
    """The TCP ports of another security group to which a group has egress."""
    return _opened(template, "Egress", source, DestinationSecurityGroupId=to)


def _opened(template: Template, direction: str, group_id: Any, **other: Any) -> set[tuple[int, int]]:
    rules = [rule["Properties"] for rule in template.resources(f"AWS::EC2::SecurityGroup{direction}").values()]
    wanted = {"GroupId": group_id, "IpProtocol": "tcp", **other}
    return {(rule["FromPort"], rule["ToPort"]) for rule in rules if wanted.items() <= rule.items()}


def test_new_efs_is_encrypted_elastic_and_never_backed_up() -> None:
    template, _ = new_efs()
    assert template.properties("AWS::EFS::FileSystem") == {
        "Encrypted": True,
        "PerformanceMode": "generalPurpose",
        "ThroughputMode": "elastic",
        "BackupPolicy": {"Status": "DISABLED"},
    }
    target = template.properties("AWS::EFS::MountTarget")
    assert (target["SubnetId"], target["SecurityGroups"]) == (SUBNET_ID, [group_id(template, "Files")])


def test_new_lustre_is_compressed_scratch_in_subnet_of_nodes() -> None:
    template, _ = new_lustre()
    made = template.properties("AWS::FSx::FileSystem")
    assert (made["FileSystemType"], made["FileSystemTypeVersion"], made["StorageType"]) == ("LUSTRE", "2.15", "SSD")
    assert (made["StorageCapacity"], made["SubnetIds"]) == (4800, [SUBNET_ID])
    assert made["SecurityGroupIds"] == [group_id(template, "Files")]
    assert made["LustreConfiguration"] == {"DeploymentType": "SCRATCH_2", "DataCompressionType": "LZ4"}


def test_lustre_with_a_throughput_is_persistent_and_never_backed_up() -> None:
    template, _ = new_lustre(per_unit_storage_throughput=250)
    assert template.properties("AWS::FSx::FileSystem")["LustreConfiguration"] == {
        "DeploymentType": "PERSISTENT_2",
        "PerUnitStorageThroughput": 250,
        "DataCompressionType": "LZ4",
        "AutomaticBackupRetentionDays": 0,
    }


@pytest.mark.parametrize("made", [new_efs, existing_efs])
def test_efs_accepts_only_nfs_from_the_nodes(made: Any) -> None:
    template, _ = made()
    nodes, target = group_id(template, "Nodes"), group_id(template, "Files") if made is new_efs else GROUP_ID
    assert let_in(template, target, nodes) == let_out(template, nodes, target) == NFS
    assert len(template.resources("AWS::EC2::SecurityGroupIngress")) == 1


@pytest.mark.parametrize("made", [new_lustre, existing_lustre])
def test_lustre_and_nodes_reach_each_other_on_lustre_ports(made: Any) -> None:
    template, _ = made()
    nodes, files = group_id(template, "Nodes"), group_id(template, "Files") if made is new_lustre else GROUP_ID
    for group, other in ((nodes, files), (files, nodes)):
        assert let_in(template, group, other) == let_out(template, group, other) == LUSTRE


def test_new_lustre_allows_no_other_traffic() -> None:
    template, _ = new_lustre()
    files = template.resources()[group(template, "Files")]["Properties"]
    assert "SecurityGroupIngress" not in files
    # A group without an egress rule in its own resource would get EC2's default rule, which allows all egress.
    assert [rule["CidrIp"] for rule in files["SecurityGroupEgress"]] == ["127.0.0.1/32"]
    own = group_id(template, "Files")
    assert let_in(template, own, own) == let_out(template, own, own) == LUSTRE  # Its servers reach each other.
    rules = {name for name in template.resources() if "SecurityGroup" in name and name.startswith("Files")}
    assert rules <= template.before(template.logical_id("AWS::FSx::FileSystem"))


@pytest.mark.parametrize(("policy", "fate"), [(RemovalPolicy.DESTROY, "Delete"), (RemovalPolicy.RETAIN, "Retain")])
def test_lustre_and_its_group_are_deleted_or_retained_together(policy: RemovalPolicy, fate: str) -> None:
    template, _ = new_lustre(removal_policy=policy)
    both = [template.resources()[group(template, "Files")], *template.resources("AWS::FSx::FileSystem").values()]
    assert {(resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) for resource in both} == {(fate, "Retain")}


def test_existing_file_systems_are_referenced_by_id() -> None:
    (with_efs, efs), (with_lustre, lustre) = existing_efs(), existing_lustre()
    assert not with_efs.resources("AWS::EFS::FileSystem") | with_efs.resources("AWS::EFS::MountTarget")
    assert not with_lustre.resources("AWS::FSx::FileSystem")
    assert efs["efs_dns"] == f"{EXISTING}.efs.us-west-2.${{AWS::URLSuffix}}"
    assert lustre["lustre_dns"] == f"{EXISTING}.fsx.us-west-2.${{AWS::URLSuffix}}"
    assert lustre["lustre_mount_name"] == "abcdefgh"

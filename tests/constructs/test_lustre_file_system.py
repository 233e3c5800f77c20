"""LustreFileSystem: what is made, who reaches it, and what is left."""

from functools import cache
from typing import Any

import pytest
from aws_cdk import RemovalPolicy, Size

from tests.constructs.file_systems import OWN_GROUP, SUBNET_ID, Placed, group, group_id, let_in, let_out, placed
from tests.constructs.synth import Json
from trainium_cdk import LustreFileSystem

LUSTRE_PORTS = {(988, 988), (1018, 1023)}


@cache
def new(**given: Any) -> Placed:
    arguments: dict[str, Any] = {"size": Size.gibibytes(1200), **given}
    return placed(lambda stack, vpc, subnet: LustreFileSystem(stack, "Lustre", vpc=vpc, subnet=subnet, **arguments))


@cache
def existing() -> Placed:
    return placed(
        lambda stack, _vpc, _subnet: LustreFileSystem.from_lustre_file_system_attributes(
            stack, "Lustre", file_system_id="fs-0123456789abcdef0", mount_name="abcdefgh", security_group_id=OWN_GROUP
        )
    )


def file_system(**arguments: Any) -> Json:
    return new(**arguments)[0].properties("AWS::FSx::FileSystem")


def test_it_is_scratch_ssd_of_the_lustre_version_for_new_file_systems_compressed() -> None:
    made = file_system(size=Size.gibibytes(4800))
    assert (made["FileSystemType"], made["FileSystemTypeVersion"], made["StorageType"]) == ("LUSTRE", "2.15", "SSD")
    assert made["StorageCapacity"] == 4800
    assert made["LustreConfiguration"] == {"DeploymentType": "SCRATCH_2", "DataCompressionType": "LZ4"}


def test_a_throughput_makes_it_persistent_and_never_backed_up() -> None:
    assert file_system(per_unit_storage_throughput=250)["LustreConfiguration"] == {
        "DeploymentType": "PERSISTENT_2",
        "PerUnitStorageThroughput": 250,
        "DataCompressionType": "LZ4",
        "AutomaticBackupRetentionDays": 0,
    }


def test_it_is_in_the_nodes_subnet_behind_a_group_of_its_own() -> None:
    made = file_system()
    assert made["SubnetIds"] == [SUBNET_ID]
    assert made["SecurityGroupIds"] == [group_id(new()[0], "Lustre")]


@pytest.mark.parametrize("made", [new, existing])
def test_lustres_ports_are_open_between_nodes_and_file_system_both_ways(made: Any) -> None:
    template, _ = made()
    nodes, lustre = group_id(template, "Nodes"), group_id(template, "Lustre") if made is new else OWN_GROUP
    for one, other in ((nodes, lustre), (lustre, nodes)):
        assert let_in(template, one, other) == let_out(template, one, other) == LUSTRE_PORTS


def test_the_file_servers_reach_each_other() -> None:
    template, _ = new()
    lustre = group_id(template, "Lustre")
    assert let_in(template, lustre, lustre) == let_out(template, lustre, lustre) == LUSTRE_PORTS


def test_nothing_else_comes_in_or_goes_out() -> None:
    template, _ = new()
    assert "SecurityGroupIngress" not in group(template, "Lustre")
    # A group without a rule in its own resource would get EC2's rule that lets everything out.
    assert [rule["CidrIp"] for rule in group(template, "Lustre")["SecurityGroupEgress"]] == ["127.0.0.1/32"]
    for direction in ("Ingress", "Egress"):
        rules = template.resources(f"AWS::EC2::SecurityGroup{direction}").values()
        assert all(rule["Properties"].keys().isdisjoint({"CidrIp", "CidrIpv6"}) for rule in rules)


def test_the_rules_are_there_before_the_file_system() -> None:
    template, _ = new()
    rules = {name for name in template.resources() if "SecurityGroup" in name and name.startswith("Lustre")}
    assert rules <= template.before(template.logical_id("AWS::FSx::FileSystem"))


@pytest.mark.parametrize(("policy", "fate"), [(RemovalPolicy.DESTROY, "Delete"), (RemovalPolicy.RETAIN, "Retain")])
def test_the_file_system_and_its_group_go_together_or_stay_together(policy: RemovalPolicy, fate: str) -> None:
    template, _ = new(removal_policy=policy)
    fates = {
        (resource["DeletionPolicy"], resource["UpdateReplacePolicy"])
        for name, resource in template.resources().items()
        if resource["Type"] in ("AWS::FSx::FileSystem", "AWS::EC2::SecurityGroup") and name.startswith("Lustre")
    }
    assert fates == {(fate, "Retain")}


def test_nodes_find_an_existing_one_by_its_id_and_mount_name() -> None:
    _, places = existing()
    assert places["lustre_dns"] == "fs-0123456789abcdef0.fsx.us-west-2.${AWS::URLSuffix}"
    assert places["lustre_mount_name"] == "abcdefgh"

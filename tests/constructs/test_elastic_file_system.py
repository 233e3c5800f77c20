"""ElasticFileSystem: what is made, who reaches it, and what is left."""

from functools import cache
from typing import Any

import pytest

from tests.constructs.file_systems import OWN_GROUP, SUBNET_ID, Placed, group_id, let_in, let_out, placed
from trainium_cdk import ElasticFileSystem

NFS = {(2049, 2049)}
OWN = "fs-0123456789abcdef0"


@cache
def new(**arguments: Any) -> Placed:
    return placed(lambda stack, vpc, subnet: ElasticFileSystem(stack, "Efs", vpc=vpc, subnet=subnet, **arguments))


@cache
def existing() -> Placed:
    return placed(
        lambda stack, _vpc, _subnet: ElasticFileSystem.from_elastic_file_system_attributes(
            stack, "Efs", file_system_id=OWN, security_group_id=OWN_GROUP
        )
    )


def test_it_is_encrypted_elastic_and_never_backed_up() -> None:
    assert new()[0].properties("AWS::EFS::FileSystem") == {
        "Encrypted": True,
        "PerformanceMode": "generalPurpose",
        "ThroughputMode": "elastic",
        "BackupPolicy": {"Status": "DISABLED"},
    }


def test_its_mount_target_is_in_the_nodes_subnet_behind_a_group_of_its_own() -> None:
    template, _ = new()
    target = template.properties("AWS::EFS::MountTarget")
    assert (target["SubnetId"], target["SecurityGroups"]) == (SUBNET_ID, [group_id(template, "Efs")])


@pytest.mark.parametrize("made", [new, existing])
def test_nfs_alone_goes_from_the_nodes_to_the_mount_target(made: Any) -> None:
    template, _ = made()
    nodes, target = group_id(template, "Nodes"), group_id(template, "Efs") if made is new else OWN_GROUP
    assert let_in(template, target, nodes) == let_out(template, nodes, target) == NFS
    assert len(template.resources("AWS::EC2::SecurityGroupIngress")) == 1


def test_an_existing_one_with_a_mount_target_is_not_in_the_template() -> None:
    template, places = existing()
    assert not template.resources("AWS::EFS::FileSystem") | template.resources("AWS::EFS::MountTarget")
    assert places["efs_dns"] == f"{OWN}.efs.us-west-2.${{AWS::URLSuffix}}"

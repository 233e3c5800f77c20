"""Whether the EFS file system of a plan can be created, or mounted by the nodes."""

from dataclasses import replace
from typing import Any

import pytest

from tests.core.fake_account import FakeAccount
from tests.core.fake_file_systems import EFS, TARGET
from tests.core.fake_network import SUBNET, VPC
from tests.core.findings import finding_of
from tests.core.plans import EXISTING_EFS, EXISTING_VPC
from trainium_core.aws.storage import EfsFileSystem, MountTarget
from trainium_core.preflight.finding import Finding


def own(file_system: EfsFileSystem | None = EFS) -> Finding:
    """The finding about a file system that the nodes mount through an existing mount target."""
    return finding_of("efs", FakeAccount(found_efs=file_system), **EXISTING_VPC, **EXISTING_EFS)


def without_target(file_system: EfsFileSystem, **settings: Any) -> Finding:
    """The finding about a file system for which the cluster creates a mount target."""
    return finding_of("efs", FakeAccount(found_efs=file_system), efs=EXISTING_EFS["efs"], **settings)


def with_targets(*targets: MountTarget) -> EfsFileSystem:
    return replace(EFS, mount_targets=targets)


def test_new_file_system_without_service_in_region_fails() -> None:
    finding = finding_of("efs", FakeAccount(services=()), efs="new")
    assert (finding.outcome, finding.fix) == ("fail", "remove trn:efs, or choose another region")


def test_existing_mount_target_in_zone_of_nodes_passes() -> None:
    assert (own().outcome, own().found) == (
        "pass",
        f"{EFS.file_system_id} is available; its mount target in {SUBNET.zone_id} is available",
    )


@pytest.mark.parametrize(
    ("file_system", "says", "fix"),
    [
        (None, "no fs-0fedcba9876543210 in us-west-2", "set trn:efs to another, or to new"),
        (replace(EFS, state="deleting"), "is deleting", "wait"),
        (with_targets(), "has no mount target in usw2-az4", "remove trn:efs_security_group"),
        (with_targets(replace(TARGET, zone_id="usw2-az1")), "has no mount target in usw2-az4", "remove trn:efs_sec"),
        (with_targets(replace(TARGET, state="creating")), "in usw2-az4 is creating", "wait until it is available"),
        (
            with_targets(replace(TARGET, security_group_ids=["sg-1"])),
            "is not in the security group sg-0",
            "efs_security_group to sg-1",
        ),
    ],
)
def test_file_system_unreachable_for_nodes_fails(file_system: EfsFileSystem | None, says: str, fix: str) -> None:
    finding = own(file_system)
    assert finding.outcome == "fail"
    assert says in finding.found
    assert fix in finding.fix


def test_new_mount_target_is_not_proposed_if_it_is_impossible() -> None:
    finding = own(with_targets(replace(TARGET, vpc_id="vpc-1")))
    assert "EFS allows them in only one VPC" in finding.found
    assert finding.fix == "set trn:vpc_id to vpc-1, and trn:subnet_id with it, or delete these mount targets"


def test_second_mount_target_in_a_zone_is_refused() -> None:
    finding = without_target(EFS, **EXISTING_VPC)
    assert (finding.outcome, finding.fix) == (
        "fail",
        f"set trn:efs_security_group to {EXISTING_EFS['efs_security_group']}",
    )


def test_mount_target_in_a_second_vpc_is_refused() -> None:
    finding = without_target(EFS)
    fix = f"set trn:vpc_id to {VPC.vpc_id}, and trn:subnet_id with it, or delete these mount targets"
    assert (finding.outcome, finding.fix) == ("fail", fix)


def test_mount_target_created_by_the_cluster_passes() -> None:
    assert without_target(with_targets(replace(TARGET, clusters=["trn-pilot"]))).outcome == "pass"
    assert without_target(with_targets(replace(TARGET, clusters=["another"]))).outcome == "fail"


@pytest.mark.parametrize(("zone", "outcome"), [("usw2-az4", "pass"), ("usw2-az1", "fail")])
def test_one_zone_file_system_is_reachable_only_from_its_zone(zone: str, outcome: str) -> None:
    assert without_target(replace(with_targets(), only_zone_id=zone), **EXISTING_VPC).outcome == outcome

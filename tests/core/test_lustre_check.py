"""Whether the FSx for Lustre file system of a plan can be created, or mounted by the nodes."""

from dataclasses import replace
from typing import Any

import pytest

from tests.core.fake_account import FakeAccount
from tests.core.fake_file_systems import LUSTRE
from tests.core.fake_network import SUBNET, VPC
from tests.core.findings import finding_of
from tests.core.plans import EXISTING_LUSTRE, EXISTING_VPC
from trainium_core.aws.network import Subnet
from trainium_core.preflight.finding import Finding

ELSEWHERE = Subnet(subnet_id="subnet-1", vpc_id=VPC.vpc_id, zone_id="usw2-az1", free_addresses=251)


def own(**account: Any) -> Finding:
    return finding_of("lustre", FakeAccount(**account), **EXISTING_VPC, **EXISTING_LUSTRE)


def test_new_file_system_without_service_in_region_fails() -> None:
    finding = finding_of("lustre", FakeAccount(services=("efs",)), fsx_lustre=1200)
    assert (finding.outcome, finding.found) == ("fail", "AWS lists no FSx for Lustre in us-west-2")


def test_existing_file_system_in_subnet_of_nodes_passes() -> None:
    finding = own()
    assert (finding.outcome, finding.found) == ("pass", f"{LUSTRE.file_system_id} is AVAILABLE")


@pytest.mark.parametrize(
    ("change", "says", "fix"),
    [
        ({"kind": "ONTAP"}, "is an FSx file system of type ONTAP, not LUSTRE", "set trn:fsx_lustre to another"),
        ({"state": "FAILED"}, "is FAILED", "wait, or check it"),
        ({"vpc_id": "vpc-1"}, f"is in vpc-1, not in {VPC.vpc_id}", "set trn:vpc_id to vpc-1"),
        ({"mount_name": "zyxw"}, "is zyxw, not abcdefgh", "set trn:fsx_lustre_mount_name to zyxw"),
        (
            {"security_group_ids": ["sg-2", "sg-1"]},
            "is not in the security group sg-0",
            "fsx_lustre_security_group to sg-1 or sg-2",
        ),
    ],
)
def test_file_system_unreachable_for_nodes_fails(change: dict[str, Any], says: str, fix: str) -> None:
    finding = own(found_lustre=replace(LUSTRE, **change))
    assert finding.outcome == "fail"
    assert says in finding.found
    assert fix in finding.fix


def test_file_system_in_another_zone_warns_of_billed_traffic() -> None:
    finding = own(
        found_lustre=replace(LUSTRE, subnet_id=ELSEWHERE.subnet_id), other_subnets={ELSEWHERE.subnet_id: ELSEWHERE}
    )
    assert finding.outcome == "warn"
    assert f"is in usw2-az1, and the nodes are in {SUBNET.zone_id}" in finding.found


def test_file_system_with_unreadable_zone_is_unknown() -> None:
    assert own(found_lustre=replace(LUSTRE, subnet_id="subnet-1")).outcome == "unknown"


@pytest.mark.parametrize("off", ["dns_support", "dns_hostnames"])
@pytest.mark.parametrize("file_system", [EXISTING_LUSTRE, {"fsx_lustre": 1200}])
def test_vpc_without_dns_support_or_hostnames_fails(off: str, file_system: dict[str, Any]) -> None:
    account = FakeAccount(found_vpc=replace(VPC, **{off: False}))
    finding = finding_of("lustre", account, **EXISTING_VPC, **file_system)
    assert finding.outcome == "fail"
    assert finding.fix.startswith("turn on enableDns")


def test_file_system_in_another_subnet_of_zone_passes() -> None:
    near = replace(ELSEWHERE, zone_id=SUBNET.zone_id)
    finding = own(found_lustre=replace(LUSTRE, subnet_id=near.subnet_id), other_subnets={near.subnet_id: near})
    assert finding.outcome == "pass"


def test_missing_file_system_fails() -> None:
    finding = own(found_lustre=None)
    assert (finding.outcome, finding.found) == (
        "fail",
        f"no {LUSTRE.file_system_id} in us-west-2 that this account can access",
    )

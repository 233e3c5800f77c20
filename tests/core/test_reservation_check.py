"""Whether the Capacity Block or reservation of a plan exists, fits and has room."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.fake_account import FakeAccount
from tests.core.fake_capacity import ACTIVE, NOW, SCHEDULED_BLOCK
from tests.core.plans import RESERVATION, from_settings
from trainium_core.aws.capacity import Reservation
from trainium_core.engines.ec2.checks.reservation_check import check_reservation, judge_reservation
from trainium_runtime.check_result import CheckResult
from trainium_runtime.errors import UnavailableError

RESERVED = {"capacity": "reservation", "reservation_id": RESERVATION}
IN_A_BLOCK = {"capacity": "capacity-block", "reservation_id": RESERVATION}
EXISTING_SUBNET = {"vpc_id": "vpc-0123456789abcdef0", "subnet_id": "subnet-0123456789abcdef0"}


def judge(reservation: Reservation, *, own_nodes: int = 0, zone_id: str = "usw2-az1", **settings: Any) -> CheckResult:
    plan = from_settings(**{**RESERVED, "nodes": 4, **settings})
    return judge_reservation(plan, reservation, zone_id=zone_id, own_nodes=own_nodes, now=NOW)


def test_active_reservation_that_fits_and_has_room_passes() -> None:
    assert judge(ACTIVE) == CheckResult(
        outcome="pass", found=f"{RESERVATION}: active; 4 of 4 instances are left", needed="4 instances"
    )


def test_scheduled_block_is_a_warning_with_its_start() -> None:
    answer = judge(SCHEDULED_BLOCK, **IN_A_BLOCK)
    assert (answer.outcome, answer.fix) == ("warn", "deploy at any time: the nodes launch when it begins")
    assert "no node can launch before 2026-11-22 11:30 UTC" in answer.found
    assert "usable until 2026-11-24 10:45 UTC" in answer.found


@pytest.mark.parametrize(
    ("changed", "found", "fix"),
    [
        (
            {"capacity": "capacity-block"},
            "its kind is capacity-block, not reservation",
            "trn:capacity to capacity-block",
        ),
        ({"instance_type": "trn2.48xlarge"}, "its type is trn2.48xlarge, not trn1.32xlarge", "trn:instance_type to"),
        ({"zone_id": "usw2-az4"}, "its zone is usw2-az4, not usw2-az1", "trn:availability_zone_id to usw2-az4"),
        ({"placement_group": "mine"}, "its placement group is mine, not none", "trn:placement_group to mine"),
    ],
)
def test_mismatch_fails_with_the_property(changed: dict[str, Any], found: str, fix: str) -> None:
    answer = judge(replace(ACTIVE, **changed))
    assert (answer.outcome, found in answer.found, fix in answer.fix) == ("fail", True, True)


def test_zone_of_existing_subnet_is_changed_with_the_subnet() -> None:
    assert judge(ACTIVE, zone_id="usw2-az4", **EXISTING_SUBNET).fix == "set trn:subnet_id to a subnet in usw2-az1"


@pytest.mark.parametrize("state", ["expired", "failed"])
def test_ended_reservation_fails(state: str) -> None:
    answer = judge(replace(ACTIVE, state=state, available=0))
    assert (answer.outcome, answer.found) == ("fail", f"{RESERVATION}: it is {state}")


@pytest.mark.parametrize(("minutes", "outcome"), [(74, "fail"), (75, "pass")])
def test_block_must_leave_time_before_the_clock_stops_nodes(minutes: int, outcome: str) -> None:
    ending = replace(SCHEDULED_BLOCK, state="active", available=4, start=NOW, end=NOW + timedelta(minutes=minutes))
    assert judge(ending, node_timeout_minutes=30, **IN_A_BLOCK).outcome == outcome


@pytest.mark.parametrize(("minutes", "outcome"), [(29, "fail"), (30, "pass")])
def test_reservation_must_leave_time_before_its_end(minutes: int, outcome: str) -> None:
    assert judge(replace(ACTIVE, end=NOW + timedelta(minutes=minutes)), node_timeout_minutes=30).outcome == outcome


def test_scheduled_block_of_unknown_size_is_unknown() -> None:
    answer = judge(replace(SCHEDULED_BLOCK, total=0), **IN_A_BLOCK)
    assert (answer.outcome, "is known only after it starts" in answer.found) == ("unknown", True)


@given(nodes=st.integers(1, 64), available=st.integers(0, 64), own=st.integers(0, 64))
def test_reservation_has_room_for_free_and_already_running_nodes(nodes: int, available: int, own: int) -> None:
    answer = judge(replace(ACTIVE, total=200, available=available), own_nodes=own, nodes=nodes)
    assert (answer.outcome == "pass") == (nodes <= available + own)


def test_nodes_in_the_reservation_need_no_room() -> None:
    account = FakeAccount(account_reservations=[replace(ACTIVE, available=0)], nodes_in_reservation=2)
    answer = check_reservation(from_settings(nodes=2, **RESERVED), account)
    assert answer is not None
    assert answer.outcome == "pass"


def test_zone_of_a_missing_subnet_is_unknown() -> None:
    account = FakeAccount(account_reservations=[ACTIVE], found_subnet=None)
    with pytest.raises(UnavailableError, match="the zone of the nodes is unknown"):
        check_reservation(from_settings(**RESERVED, **EXISTING_SUBNET), account)


def test_missing_reservation_fails() -> None:
    answer = check_reservation(from_settings(**RESERVED), FakeAccount())
    assert answer is not None
    assert (answer.outcome, answer.found) == ("fail", f"no {RESERVATION} in us-west-2 that this account can access")

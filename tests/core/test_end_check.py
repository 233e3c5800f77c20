"""The check `end`: whether the pilot ends long enough after its deployment."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.core.fake_account import FakeAccount
from tests.core.fake_capacity import SCHEDULED_BLOCK
from tests.core.plans import RESERVATION, from_settings
from trainium_core.plan.pilot_end import minute_text
from trainium_core.preflight.end_check import check_end, judge_end

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
PASSED = {"ends": "2020-01-01T00:00Z"}


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        (PASSED, "no nodes would be launched"),
        ({**PASSED, "ends_action": "destroy"}, "the stack would be deleted"),
        ({**PASSED, "stacks": "pcs"}, "the stack would be deleted"),
    ],
    ids=["sleep", "destroy", "pcs"],
)
def test_past_end_fails_with_its_consequence(settings: dict[str, Any], what: str) -> None:
    answer = check_end(from_settings(**settings), FakeAccount())
    assert answer is not None
    assert (answer.outcome, answer.found) == ("fail", f"the pilot ended at 2020-01-01T00:00Z: {what}")
    assert "trn extend 8h" in answer.fix


@pytest.mark.parametrize(("days", "outcome"), [(4, "pass"), (6, "fail")])
def test_duration_counts_from_the_first_deployment(days: int, outcome: str) -> None:
    created = datetime.now(UTC) - timedelta(days=days)
    account = FakeAccount(stack_status={"TrnClusterStack": "CREATE_COMPLETE"}, created=created)
    answer = check_end(from_settings(ends="5d"), account)
    assert answer is not None
    assert answer.outcome == outcome


@pytest.mark.parametrize(
    ("ends", "outcome", "fix"),
    [
        ("8h", "pass", ""),
        ("2026-11-30T12:00Z", "fail", "set trn:ends to a time later than 2026-12-01T12:50Z"),
        ("2026-12-01T12:30Z", "fail", "set trn:ends to a time later than 2026-12-01T12:50Z"),
        ("2026-12-02T12:00Z", "pass", ""),
    ],
)
def test_end_leaves_time_after_the_start_of_a_capacity_block(ends: str, outcome: str, fix: str) -> None:
    plan = from_settings(capacity="capacity-block", reservation_id=RESERVATION, nodes=2, ends=ends)
    begins = datetime(2026, 12, 1, 12, tzinfo=UTC)
    answer = judge_end(plan, deployed=None, begins=begins, now=NOW)
    assert (answer.outcome, answer.fix) == (outcome, fix)
    assert f"{RESERVATION} begins at 2026-12-01T12:00Z" in answer.found


def test_duration_counts_from_the_start_of_a_capacity_block() -> None:
    plan = from_settings(capacity="capacity-block", reservation_id=RESERVATION, nodes=2, ends="8h")
    begins = datetime(2026, 12, 1, 12, tzinfo=UTC)
    answer = judge_end(plan, deployed=NOW, begins=begins, now=begins + timedelta(hours=1))
    assert answer.found == "the pilot ends at 2026-12-01T20:00Z, 7.0 h from now"


def test_end_is_compared_with_the_reservation_in_the_account() -> None:
    begins = datetime.now(UTC) + timedelta(days=10)
    plan = from_settings(capacity="capacity-block", reservation_id=RESERVATION, nodes=2, ends=minute_text(begins))
    account = FakeAccount(account_reservations=[replace(SCHEDULED_BLOCK, start=begins)])
    answer = check_end(plan, account)
    assert answer is not None
    assert answer.outcome == "fail"


def test_end_before_the_nodes_are_up_is_a_warning() -> None:
    answer = judge_end(from_settings(ends="2026-11-21T12:30Z"), deployed=None, now=NOW)
    assert (answer.outcome, answer.needed) == ("warn", "50 minutes for the nodes to start")

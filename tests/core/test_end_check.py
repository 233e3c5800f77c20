"""The check `end`: whether the pilot ends long enough after its deployment."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.core.fake_account import FakeAccount
from tests.core.plans import from_settings
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
    account = FakeAccount(stacks={"TrnClusterStack": "CREATE_COMPLETE"}, created=created)
    answer = check_end(from_settings(ends="5d"), account)
    assert answer is not None
    assert answer.outcome == outcome


def test_end_before_the_nodes_are_up_is_a_warning() -> None:
    answer = judge_end(from_settings(ends="2026-11-21T12:30Z"), deployed=None, now=NOW)
    assert (answer.outcome, answer.needed) == ("warn", "50 minutes for the nodes to start")

"""The settings of a pilot's end, and the rules that relate them."""

from typing import Any

import pytest

from tests.core.plans import RESERVATION, from_settings, problems_of, the_problem

BLOCK = {"capacity": "capacity-block", "reservation_id": RESERVATION}


@pytest.mark.parametrize(
    "settings",
    [{"ends": "40h"}, {"budget_usd": "500", "budget_action": "stop"}, {"idle_minutes": "60"}, BLOCK],
    ids=str,
)
def test_end_budget_idleness_and_block_require_a_clock(settings: dict[str, Any]) -> None:
    assert from_settings(**settings).needs_clock


@pytest.mark.parametrize(
    ("key", "value", "needs"),
    [
        ("ends_action", "destroy", "trn:ends"),
        ("notify_email", "someone@example.com", "trn:ends"),
        ("budget_action", "stop", "trn:budget_usd"),
    ],
)
def test_end_options_require_an_end(key: str, value: str, needs: str) -> None:
    problem = the_problem(**{key: value})
    assert problem.key == key
    assert problem.fix == f"give {needs} too, or remove it"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("ends", "2026-12-01T18:00"),
        ("notify_email", "someone"),
        ("notify_email", "Some One <some@one.com>"),
        ("budget_usd", "99.50"),
        ("idle_minutes", "29"),
    ],
)
def test_malformed_value_is_refused(key: str, value: str) -> None:
    assert key in [problem.key for problem in problems_of(**{key: value})]


def test_budget_in_a_region_without_budgets_is_refused() -> None:
    problem = the_problem(instance_type="trn2.48xlarge", region="ap-south-2", budget_usd="500")
    assert "trn:cluster=trn-pilot" in problem.fix


@pytest.mark.parametrize(
    ("settings", "why"),
    [(BLOCK, "paid in advance"), ({"stacks": "hyperpod"}, "cannot sleep")],
    ids=["block", "hyperpod"],
)
def test_idleness_is_refused_for_prepaid_or_sleepless_nodes(settings: dict[str, Any], why: str) -> None:
    assert why in the_problem(idle_minutes="60", **settings).allowed

"""How ways to get capacity are ranked and summarised."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.fake_capacity import NOW, TOMORROW
from trainium_core.capacity.option import PROSPECTS, CapacityOption, Prospect, outlook, ranked
from trainium_core.capacity.search import block_durations, nearest_duration

SPOT = CapacityOption(capacity="spot", region="us-west-2", prospect="now", hourly=Decimal(2))
BLOCK = CapacityOption(
    capacity="capacity-block", region="us-west-2", prospect="later", start=TOMORROW, hourly=Decimal(1)
)

options = st.builds(
    CapacityOption,
    capacity=st.sampled_from(["spot", "on-demand"]),
    region=st.sampled_from(["us-east-1", "us-west-2"]),
    prospect=st.sampled_from(list(PROSPECTS)),
    start=st.sampled_from([None, TOMORROW, TOMORROW + timedelta(days=9)]),
    hourly=st.none() | st.decimals(0, 100, places=2),
    paid_for=st.booleans(),
)


def test_cheaper_option_comes_first_and_unknown_price_last() -> None:
    cheap, dear, unknown = (replace(SPOT, hourly=usd) for usd in (Decimal(1), Decimal(9), None))
    assert ranked([unknown, dear, cheap]) == (cheap, dear, unknown)


def test_paid_capacity_comes_first() -> None:
    paid = replace(SPOT, capacity="reservation", hourly=None, paid_for=True)
    assert ranked([SPOT, paid]) == (paid, SPOT)


def test_start_after_latest_start_is_unavailable() -> None:
    of_unknown_size = replace(BLOCK, prospect="unknown", note="its size is known only after it starts")
    for option in ranked([BLOCK, of_unknown_size], start_by=NOW):
        assert (option.prospect, option.note) == ("no", "starts after 2026-11-21")


@given(st.lists(options))
def test_ranking_drops_nothing_and_sorts_by_prospect(given_options: list[CapacityOption]) -> None:
    found = ranked(given_options)
    order = [tuple(PROSPECTS).index(option.prospect) for option in found]
    assert order == sorted(order)
    assert sorted(map(repr, found)) == sorted(map(repr, given_options))


@given(st.lists(options))
def test_outlook_is_something_only_with_a_usable_option(given_options: list[CapacityOption]) -> None:
    could = any(option.prospect in ("now", "later") for option in given_options)
    assert (outlook(given_options) == "something") == could


@pytest.mark.parametrize(
    ("prospects", "expected"),
    [(["no", "later"], "something"), (["no", "unknown"], "unknown"), (["unlikely", "no"], "nothing"), ([], "unknown")],
)
def test_outlook_is_nothing_only_if_every_call_succeeded(prospects: list[Prospect], expected: str) -> None:
    assert outlook(replace(SPOT, prospect=prospect) for prospect in prospects) == expected


DAY = 24


def test_durations_are_those_of_the_documentation() -> None:
    days = [*range(1, 15), *range(21, 183, 7)]
    assert block_durations() == tuple(day * DAY for day in days)


@given(st.integers(1, 182 * DAY))
def test_nearest_block_duration_is_less_than_a_week_longer(hours: int) -> None:
    assert hours <= nearest_duration(hours) < hours + 7 * DAY

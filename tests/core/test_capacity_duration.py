"""How long a Capacity Block can be: whole days up to two weeks, then whole weeks up to 26."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainium_core.capacity.search import block_durations, nearest_duration

DAY = 24


def test_the_lengths_are_those_of_the_documentation() -> None:
    days = [*range(1, 15), *range(21, 183, 7)]
    assert block_durations() == tuple(day * DAY for day in days)


@pytest.mark.parametrize(("hours", "nearest"), [(1, 24), (24, 24), (25, 48), (15 * DAY, 21 * DAY), (9999, 182 * DAY)])
def test_the_nearest_is_the_shortest_that_is_long_enough(hours: int, nearest: int) -> None:
    assert nearest_duration(hours) == nearest


@given(st.integers(1, 182 * DAY))
def test_there_is_a_block_for_every_length_up_to_the_longest(hours: int) -> None:
    assert hours <= nearest_duration(hours) < hours + 7 * DAY

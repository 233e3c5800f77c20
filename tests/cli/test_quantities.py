"""Sizes and durations as text."""

import pytest

from trainium_cli.quantities import duration, size


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 bytes"), (1, "1 byte"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (5 * 2**40, "5120 GiB")]
)
def test_size_has_the_largest_unit_up_to_gib(count: int, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(1.25, "1.2 s"), (119, "119 s"), (200, "3 min 20 s"), (5400, "90 min"), (9000, "2.5 h")]
)
def test_duration_is_rounded_by_its_length(seconds: float, text: str) -> None:
    assert duration(seconds) == text

"""When an extended pilot ends."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainium_core.plan.pilot_end import extended_end, read_pilot_end
from trainium_runtime.pilot_end import utc_text

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("ends", "deployed", "new"),
    [
        ("2026-11-22T12:00Z", NOON, NOON + 32 * HOUR),  # an end to come: from there
        ("2026-11-20T12:00Z", NOON, NOON + 8 * HOUR),  # one that has passed: from now
        ("40h", NOON - 10 * HOUR, NOON + 38 * HOUR),  # a duration: from the first deployment
        ("40h", None, NOON + 48 * HOUR),  # not deployed yet: from now
    ],
)
def test_it_counts_from_the_end_that_is_set_or_from_now(ends: str, deployed: datetime | None, new: datetime) -> None:
    assert extended_end(ends, by=8 * HOUR, deployed=deployed, now=NOON) == new


@given(st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1)), st.integers(1, 500))
def test_it_is_never_earlier_than_promised_and_reads_back_as_it_was(now: datetime, hours: int) -> None:
    by, now = timedelta(hours=hours), now.replace(tzinfo=UTC)
    new = extended_end("2026-06-01T00:00Z", by=by, deployed=None, now=now)
    assert new >= now + by
    assert read_pilot_end(utc_text(new)).at == new

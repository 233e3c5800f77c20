"""The end of a pilot as functions read it from their environment."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainium_runtime.pilot_end import Deadline

DURATIONS = st.integers(1, 8784).map(lambda hours: Deadline(after=timedelta(hours=hours)))
INSTANTS = st.datetimes(datetime(2026, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)).map(
    lambda at: Deadline(at=at)
)


@given(DURATIONS | INSTANTS)
def test_stored_end_is_read_unchanged(end: Deadline) -> None:
    assert Deadline.from_text(str(end)) == end


def test_offset_is_converted_to_utc() -> None:
    at = datetime(2026, 12, 1, 18, tzinfo=timezone(timedelta(hours=2)))
    assert Deadline.from_text("2026-12-01T18:00+02:00") == Deadline(at=at)


@pytest.mark.parametrize("text", ["", "h", "2026-12-01T18:00", "5d", "2026-12-01T18:00 Europe/Berlin"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Deadline.from_text(text)

"""The end of a pilot: each format denotes one instant, and ambiguous or invalid text is refused."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainium_core.plan.pilot_end import extended_end, read_pilot_end
from trainium_core.setting_schema.forms import UnreadableError
from trainium_runtime.pilot_end import Deadline, utc_text

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "UTC", "America/Sao_Paulo")
instants = st.datetimes(datetime(2026, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))


@pytest.mark.parametrize(("text", "hours"), [("40h", 40), ("5d", 120), ("2w", 336), ("366d", 8784), ("8784h", 8784)])
def test_duration_counts_elapsed_hours_from_the_deployment(text: str, hours: int) -> None:
    assert read_pilot_end(text).instant(NOON) == NOON + timedelta(hours=hours)


def test_day_has_24_hours_across_clock_changes() -> None:
    deployed = datetime(2026, 10, 24, 12, 0, tzinfo=ZoneInfo("Europe/Berlin"))  # That night is an hour longer.
    assert read_pilot_end("1d").instant(deployed) == datetime(2026, 10, 25, 10, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2026-12-01T18:00+05:30", "2026-12-01T12:30Z"),
        ("2026-12-01T18:00 Europe/Berlin", "2026-12-01T17:00Z"),
        ("2026-03-29T03:00 Europe/Berlin", "2026-03-29T01:00Z"),  # The first minute after the skipped hour.
        ("2026-10-25T03:00 Europe/Berlin", "2026-10-25T02:00Z"),  # The first minute after the repeated hour.
        ("2026-12-01T18:00:30Z", "2026-12-01T18:00:30Z"),
    ],
)
def test_date_time_is_one_instant(text: str, utc: str) -> None:
    assert str(read_pilot_end(text)) == utc


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("2026-03-29T02:30 Europe/Berlin", "skip 02:30 that day"),
        ("2026-10-25T02:30 Europe/Berlin", "write 2026-10-25T00:30Z for the first, 2026-10-25T01:30Z for the second"),
        ("2026-12-01T18:00", "add the time zone: write 2026-12-01T18:00Z for UTC, or 2026-12-01T18:00 Europe/Berlin"),
        ("2026-12-01 18:00:30", "write 2026-12-01T18:00:30Z for UTC, or 2026-12-01T18:00:30 Europe/Berlin"),
        ("2026-12-01", "write 2026-12-01T00:00Z for UTC, or 2026-12-01T00:00 Europe/Berlin"),
        ("2026-12-01T18:00 Europe/Berln", "write Europe/Berlin"),
        ("2026-12-01T18:00 ../../etc/passwd", "is not a time zone"),
        ("0h", "more than zero"),
        ("367d", "at most 366d"),
        ("soon", "specify a duration"),
        ("0001-01-01T00:00+23:00", "specify a duration"),
    ],
)
def test_invalid_end_is_refused_with_the_fix(text: str, says: str) -> None:
    with pytest.raises(UnreadableError) as error:
        read_pilot_end(text)
    assert says in str(error.value)


@given(instant=instants, zone=st.sampled_from(ZONES))
def test_local_time_is_one_instant_or_refused(instant: datetime, zone: str) -> None:
    local = instant.astimezone(ZoneInfo(zone))
    text = f"{local.replace(tzinfo=None).isoformat()} {zone}"
    both = {local.replace(fold=fold).astimezone(UTC) for fold in (0, 1)}
    if len(both) == 1:
        assert read_pilot_end(text).at == instant
    else:
        with pytest.raises(UnreadableError, match="occurs twice") as error:
            read_pilot_end(text)
        assert all(utc_text(instant) in str(error.value) for instant in both)


@given(hours=st.integers(1, 366 * 24), deployed=instants)
def test_stored_end_is_read_back_unchanged(hours: int, deployed: datetime) -> None:
    for end in (Deadline(after=timedelta(hours=hours)), Deadline(at=deployed)):
        assert read_pilot_end(str(end)) == end


@given(text=st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read_pilot_end(text)
    except UnreadableError:
        return


HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("ends", "deployed", "new"),
    [
        ("2026-11-22T12:00Z", NOON, NOON + 32 * HOUR),  # A future end: from there.
        ("2026-11-20T12:00Z", NOON, NOON + 8 * HOUR),  # A past end: from now.
        ("40h", NOON - 10 * HOUR, NOON + 38 * HOUR),  # A duration: from the first deployment.
        ("40h", None, NOON + 48 * HOUR),  # Not deployed yet: from now.
    ],
)
def test_extension_counts_from_the_end_or_from_now(ends: str, deployed: datetime | None, new: datetime) -> None:
    assert extended_end(ends, by=8 * HOUR, deployed=deployed, now=NOON) == new


def test_extension_of_a_duration_counts_from_the_start_of_the_capacity_block() -> None:
    begins = NOON + 240 * HOUR
    new = extended_end("40h", by=8 * HOUR, deployed=NOON - 10 * HOUR, now=NOON, block_begins=begins)
    assert new == begins + 48 * HOUR


@given(st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1)), st.integers(1, 500))
def test_extended_end_is_never_early_and_reads_back(now: datetime, hours: int) -> None:
    by, now = timedelta(hours=hours), now.replace(tzinfo=UTC)
    new = extended_end("2026-06-01T00:00Z", by=by, deployed=None, now=now)
    assert new >= now + by
    assert read_pilot_end(utc_text(new)).at == new

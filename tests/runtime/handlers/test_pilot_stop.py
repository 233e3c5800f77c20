"""The notices in the membership after an event of the clock that nodes will stop."""

from datetime import UTC, datetime

from trainium_runtime.handlers.pilot_stop import stop_event, updated_notices
from trainium_runtime.pilot_clock import StopNotice
from trainium_wire.membership import Notice

BLOCK = Notice(kind="capacity-block-end", at="2026-11-21T13:00:00Z", reason="the block ends")
STOP = StopNotice(at=datetime(2026, 11, 21, 12, 15, tzinfo=UTC), reason="the pilot ends")
STOP_NOTICE = Notice(kind="pilot-stop", at="2026-11-21T12:15:00Z", reason="the pilot ends")


def test_stop_is_announced_once_with_time_and_reason() -> None:
    assert updated_notices(updated_notices((BLOCK,), stop_event(STOP)), stop_event(STOP)) == (BLOCK, STOP_NOTICE)


def test_withdrawal_removes_only_the_notice_of_the_clock() -> None:
    assert updated_notices((BLOCK, STOP_NOTICE), stop_event(None)) == (BLOCK,)


def test_event_of_another_sender_changes_nothing() -> None:
    assert updated_notices((BLOCK, STOP_NOTICE), {"detail-type": "Object Created"}) == (BLOCK, STOP_NOTICE)

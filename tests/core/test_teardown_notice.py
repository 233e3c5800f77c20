"""The notice that running nodes get before a teardown terminates them."""

from datetime import timedelta

import pytest

from tests.core.fake_teardown import GROUP, FakeClock, FakeTeardown, KilledError
from tests.core.test_teardown import NO_NODES, run
from trainium_core.teardown.run import verdict


def test_nodes_run_until_the_time_in_the_notice() -> None:
    clock = FakeClock()
    begun = clock.now()

    class Timed(FakeTeardown):
        def empty_group(self, name: str, *, for_good: bool) -> None:
            assert clock.now() - begun >= timedelta(minutes=2)
            super().empty_group(name, for_good=for_good)

    account = Timed(work=[])
    assert verdict(run(account, pause=clock.pause, now=clock.now)) == "gone"
    (notice,) = account.stored_notices
    assert (notice.kind, notice.at) == ("destroy", "2026-11-21T12:02:01Z")
    assert "trn-pilot is being destroyed" in notice.reason


@pytest.mark.parametrize(
    ("before", "after", "waits"),
    [(True, False, False), (True, None, True), (None, False, True), (False, False, True)],
    ids=["the job ended", "unknown", "unknown before", "no job"],
)
def test_grace_ends_when_the_job_has_ended(before: bool | None, after: bool | None, waits: bool) -> None:
    account, clock = FakeTeardown(work=[]), FakeClock()

    def has_job() -> bool | None:
        return after if account.stored_notices else before

    begun = clock.now()
    messages = list[str]()
    run(account, messages, pause=clock.pause, now=clock.now, has_job=has_job)
    assert (clock.now() - begun >= timedelta(minutes=2)) is waits
    assert ("notice to the nodes: sent: 2 nodes notified, and the job has ended" in messages) is not waits


def test_no_notice_is_sent_without_grace() -> None:
    account = FakeTeardown()
    run(account, grace=timedelta())
    assert account.stored_notices == []


@pytest.mark.parametrize(
    "account",
    [FakeTeardown(group=NO_NODES), FakeTeardown(has_membership=False), FakeTeardown(denied=frozenset({"notices"}))],
    ids=["no nodes", "no membership", "may not be read"],
)
def test_teardown_does_not_wait_without_a_notice(account: FakeTeardown) -> None:
    clock = FakeClock()
    begun = clock.now()
    assert verdict(run(account, pause=clock.pause, now=clock.now)) == "gone"
    assert clock.now() - begun < timedelta(minutes=1)


def test_refused_notice_is_reported_and_the_rest_continues() -> None:
    account, messages = FakeTeardown(refused=frozenset({"announce"})), list[str]()
    assert verdict(run(account, messages)) == "gone"
    assert "notice to the nodes: refused: announce" in messages


def test_repeated_teardown_does_not_repeat_the_notice() -> None:
    account, clock = FakeTeardown(fatal=3), FakeClock()
    with pytest.raises(KilledError):
        run(account, pause=clock.pause, now=clock.now)
    assert account.changes[-1] == "announce"
    clock.pause(600)
    notified_at = clock.now()
    account.fatal = 0
    run(account, pause=clock.pause, now=clock.now)
    assert account.changes.count("announce") == 1
    assert clock.now() - notified_at < timedelta(minutes=1)


def test_interruption_keeps_the_nodes_and_withdraws_the_notice() -> None:
    account = FakeTeardown()

    def interrupt(_: float) -> None:
        if account.stored_notices:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(account, pause=interrupt)
    assert account.stored_notices == []
    assert f"empty_group {GROUP}" not in account.changes

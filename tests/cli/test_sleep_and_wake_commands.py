"""`trn sleep` and `trn wake`: what they refuse, ask and tell. Real updates are in tests/deploy."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.cli.running import GOOD
from trainium_cli import sleep_switching
from trainium_cli.exit_codes import ExitCode
from trainium_cli.main import trn
from trainium_core.account import CannotTellError
from trainium_core.account.sleep import SleepState
from trainium_core.account.stack_events import StackEvent
from trainium_core.account.teardown import OrderRefusedError


def event(status: str, reason: str = "", *, of_stack: bool = True) -> StackEvent:
    return StackEvent(event_id=status, kind="kind", logical_id="Gate", status=status, reason=reason, of_stack=of_stack)


@dataclass
class FakeSleeper:
    """`course`: the events that each look finds after the order."""

    state: SleepState | None = field(
        default_factory=lambda: SleepState(status="UPDATE_COMPLETE", asleep=False, cluster="trn-pilot")
    )
    course: list[Sequence[StackEvent]] = field(default_factory=lambda: [[event("UPDATE_COMPLETE")]])
    refusal: str = ""
    silent: bool = False
    orders: list[bool] = field(default_factory=list[bool])

    def sleep_state(self, stack: str) -> SleepState | None:
        if self.silent:
            raise CannotTellError(f"no answer about {stack}")
        return self.state

    def set_asleep(self, stack: str, *, asleep: bool) -> None:
        if self.refusal:
            raise OrderRefusedError(f"{stack}: {self.refusal}")
        self.orders.append(asleep)

    def last_event(self, stack: str) -> str | None:  # noqa: ARG002
        return "before"

    def stack_events(self, stack: str, *, after: str | None) -> Sequence[StackEvent]:  # noqa: ARG002
        assert after == "before"
        return self.course.pop(0) if self.course[1:] else self.course[0]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sleep_switching.time, "sleep", lambda _: None)


def run(
    monkeypatch: pytest.MonkeyPatch, command: str, account: FakeSleeper, *options: str, typed: str | None = None
) -> Result:
    monkeypatch.setattr(sleep_switching, "AwsSleepControl", lambda _: account)
    monkeypatch.setattr(sleep_switching, "AwsPrices", lambda _: None)
    return CliRunner().invoke(trn, [command, *GOOD, *options], prog_name="trn", input=typed)


ASLEEP = SleepState(status="UPDATE_COMPLETE", asleep=True, cluster="trn-pilot")


@pytest.mark.parametrize(("command", "state", "order"), [("sleep", None, True), ("wake", ASLEEP, False)])
def test_it_orders_what_it_says_and_ends_when_that_is_done(
    monkeypatch: pytest.MonkeyPatch, command: str, state: SleepState | None, order: bool
) -> None:
    account = FakeSleeper(state=state) if state else FakeSleeper()
    account.course = [[], [event("UPDATE_IN_PROGRESS")], [event("UPDATE_IN_PROGRESS"), event("UPDATE_COMPLETE")]]
    ended = run(monkeypatch, command, account, "--yes")
    assert ended.exit_code == ExitCode.OK, ended.output
    assert account.orders == [order]


@pytest.mark.parametrize(("command", "price"), [("sleep", "asleep: $"), ("wake", "awake:  $")])
def test_it_says_the_price_and_asks(monkeypatch: pytest.MonkeyPatch, command: str, price: str) -> None:
    account = FakeSleeper(state=ASLEEP) if command == "wake" else FakeSleeper()
    ended = run(monkeypatch, command, account, typed="n\n")
    assert price in ended.stdout
    assert ended.exit_code == ExitCode.NOT_READY
    assert account.orders == []


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (None, "There is no stack TrnClusterStack in us-west-2: `trn deploy` makes it."),
        (SleepState(status="UPDATE_COMPLETE", asleep=False, cluster="other"), "is one of other, and not of trn-pilot"),
        (SleepState(status="UPDATE_COMPLETE", asleep=None, cluster="trn-pilot"), "run `trn deploy` once"),
        (SleepState(status="UPDATE_IN_PROGRESS", asleep=False, cluster="trn-pilot"), "is in UPDATE_IN_PROGRESS"),
    ],
)
def test_a_stack_that_cannot_be_put_to_sleep_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, state: SleepState | None, told: str
) -> None:
    account = FakeSleeper(state=state)
    ended = run(monkeypatch, "sleep", account, "--yes")
    assert ended.exit_code == ExitCode.NOT_READY
    assert told in ended.stderr
    assert account.orders == []


def test_waking_that_fails_tells_the_reason_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    told = "L-2C3B7624 allows 128 vCPUs"
    failed = [event("UPDATE_FAILED", told, of_stack=False), event("UPDATE_ROLLBACK_COMPLETE")]
    ended = run(monkeypatch, "wake", FakeSleeper(state=ASLEEP, course=[failed]), "--yes")
    assert ended.exit_code == ExitCode.NOT_READY
    assert told in ended.stderr
    assert "trn quota request" in ended.stderr


def test_a_refused_update_changes_nothing_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = run(monkeypatch, "sleep", FakeSleeper(refusal="not allowed"), "--yes")
    assert ended.exit_code == ExitCode.NOT_READY
    assert "Nothing was changed: TrnClusterStack: not allowed" in ended.stderr


def test_no_answer_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, "sleep", FakeSleeper(silent=True)).exit_code == ExitCode.COULD_NOT_TELL

"""`trn sleep` and `trn wake`: their refusals, prompts and output. Real updates are in tests/deploy."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from click.testing import Result

from tests.cli.cluster.deployed_nodes import BOOTING, VERIFIED, FakeNodes
from tests.cli.running import GOOD, run
from trainium_cli.cluster import sleep_switching
from trainium_cli.exit_codes import ExitCode
from trainium_core.nodes.aws_control import NodeGroup
from trainium_core.nodes.report import DeployedNodes
from trainium_core.sleep.state import Readiness, SleepState
from trainium_core.stacks.events import StackEvent
from trainium_runtime.errors import RequestRefusedError, UnavailableError
from trainium_wire.membership import Notice

READY = Readiness(summary="2 of 2 nodes verified", verified_nodes=2)


def event(status: str, reason: str = "", *, of_stack: bool = True) -> StackEvent:
    return StackEvent(kind="kind", logical_id="FleetReadiness", status=status, reason=reason, of_stack=of_stack)


@dataclass
class FakeSleepAccount:
    """An account with one cluster.

    Attributes:
        state: The state of the stack; None if it does not exist.
        events_by_poll: The events that each poll finds after the update was requested.
        refusal: Why updates are refused.
        unavailable: Whether requests fail.
        reported: The readiness of the fleet, from the outputs of the stack.
        updates: The requested values of the parameter Asleep.
        running: Number of running nodes in each group.
        emptied: Names of the groups that were emptied.
        stored_notices: The current notices.
        sized: Requested sizes by group.
    """

    state: SleepState | None = field(
        default_factory=lambda: SleepState(status="UPDATE_COMPLETE", asleep=False, cluster="trn-pilot")
    )
    events_by_poll: list[Sequence[StackEvent]] = field(default_factory=lambda: [[event("UPDATE_COMPLETE")]])
    refusal: str = ""
    unavailable: bool = False
    reported: Readiness | None = READY
    updates: list[bool] = field(default_factory=list[bool])
    running: int = 0
    emptied: list[str] = field(default_factory=list[str])
    stored_notices: list[Notice] = field(default_factory=list[Notice])
    sized: dict[str, int] = field(default_factory=dict[str, int])

    def size_group(self, name: str, nodes: int) -> None:
        self.sized[name] = nodes

    def node_groups(self, names: Sequence[str]) -> Sequence[NodeGroup]:
        return [NodeGroup(name=name, wanted=self.running, instances={"running": self.running}) for name in names]

    def empty_group(self, name: str, *, for_good: bool) -> None:
        assert not for_good, name
        self.emptied.append(name)
        self.running = 0

    def notices(self, stack: str) -> Sequence[Notice]:  # noqa: ARG002
        return self.stored_notices

    def announce(self, stack: str, notice: Notice) -> bool:  # noqa: ARG002
        self.stored_notices = [notice]
        return True

    def withdraw(self, stack: str, kind: str) -> None:  # noqa: ARG002
        self.stored_notices = [notice for notice in self.stored_notices if notice.kind != kind]

    def sleep_state(self, stack: str) -> SleepState | None:
        if self.unavailable:
            raise UnavailableError(f"no answer about {stack}")
        return self.state

    def set_asleep(self, stack: str, *, asleep: bool) -> None:
        if self.refusal:
            raise RequestRefusedError(f"{stack}: {self.refusal}")
        self.updates.append(asleep)

    def readiness(self, stack: str) -> Readiness | None:
        assert stack
        return self.reported

    def last_event(self, stack: str) -> str | None:  # noqa: ARG002
        return "before"

    def stack_events(self, stack: str, *, after: str | None) -> Sequence[StackEvent]:  # noqa: ARG002
        assert after == "before"
        return self.events_by_poll.pop(0) if self.events_by_poll[1:] else self.events_by_poll[0]


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sleep_switching.time, "sleep", lambda _: None)


def switch(
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    account: FakeSleepAccount,
    *options: str,
    typed: str | None = None,
    job: str | None = None,
) -> Result:
    monkeypatch.setattr(sleep_switching, "AwsSleepControl", lambda _, **__: account)
    monkeypatch.setattr(sleep_switching, "AwsPrices", lambda _, **__: None)
    monkeypatch.setattr(sleep_switching, "running_job_sentence", lambda *_: job)
    return run(command, *GOOD, *options, stdin=typed)


ASLEEP = SleepState(status="UPDATE_COMPLETE", asleep=True, cluster="trn-pilot")


@pytest.mark.parametrize(("command", "state", "asleep"), [("sleep", None, True), ("wake", ASLEEP, False)])
def test_sleep_and_wake_wait_for_the_update(
    monkeypatch: pytest.MonkeyPatch, command: str, state: SleepState | None, asleep: bool
) -> None:
    account = FakeSleepAccount(state=state) if state else FakeSleepAccount()
    account.events_by_poll = [
        [],
        [event("UPDATE_IN_PROGRESS")],
        [event("UPDATE_IN_PROGRESS"), event("UPDATE_COMPLETE")],
    ]
    ended = switch(monkeypatch, command, account, "--yes")
    assert ended.exit_code == ExitCode.OK, ended.output
    assert account.updates == [asleep]


@pytest.mark.parametrize(("command", "price"), [("sleep", "asleep: $"), ("wake", "awake:  $")])
def test_prompt_shows_the_price(monkeypatch: pytest.MonkeyPatch, command: str, price: str) -> None:
    account = FakeSleepAccount(state=ASLEEP) if command == "wake" else FakeSleepAccount()
    ended = switch(monkeypatch, command, account, typed="n\n")
    assert price in ended.stdout
    assert ended.exit_code == ExitCode.NOT_READY
    assert account.updates == []


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (None, "Stack Mine does not exist in us-west-2: `trn deploy` creates it."),
        (
            SleepState(status="UPDATE_COMPLETE", asleep=False, cluster="other"),
            "Mine belongs to other",
        ),
    ],
)
def test_refused_sleep_changes_nothing(monkeypatch: pytest.MonkeyPatch, state: SleepState | None, message: str) -> None:
    account = FakeSleepAccount(state=state)
    ended = switch(monkeypatch, "sleep", account, "--yes", "--stack", "Mine")
    assert (ended.exit_code, account.updates) == (ExitCode.NOT_READY, [])
    assert message in ended.stderr


def test_cluster_that_wakes_without_nodes_is_not_called_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    reported = Readiness(summary="no nodes, as planned: the budget of $500 is spent", verified_nodes=0)
    account = FakeSleepAccount(state=ASLEEP, reported=reported)
    answer = switch(monkeypatch, "wake", account, "--yes")
    assert answer.exit_code == ExitCode.NOT_READY
    assert "the budget of $500 is spent" in answer.stderr


def test_failed_wake_reports_reason_and_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    message = "L-2C3B7624 allows 128 vCPUs"
    failed = [event("UPDATE_FAILED", message, of_stack=False), event("UPDATE_ROLLBACK_COMPLETE")]
    ended = switch(monkeypatch, "wake", FakeSleepAccount(state=ASLEEP, events_by_poll=[failed]), "--yes")
    assert ended.exit_code == ExitCode.NOT_READY
    assert message in ended.stderr
    assert "trn quota request" in ended.stderr


def test_refused_wake_changes_nothing_and_reports_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = switch(monkeypatch, "wake", FakeSleepAccount(state=ASLEEP, refusal="not allowed"), "--yes")
    assert ended.exit_code == ExitCode.NOT_READY
    assert "Nothing was changed: TrnClusterStack: not allowed" in ended.stderr


@pytest.mark.parametrize(("command", "state", "asleep"), [("sleep", None, True), ("wake", ASLEEP, False)])
def test_refusal_because_of_the_own_update_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, command: str, state: SleepState | None, asleep: bool
) -> None:
    class Late(FakeSleepAccount):
        """Its first response is lost, so the request is repeated."""

        def set_asleep(self, stack: str, *, asleep: bool) -> None:
            super().set_asleep(stack, asleep=asleep)
            assert self.state
            self.state = replace(self.state, asleep=asleep, status="UPDATE_IN_PROGRESS")
            raise RequestRefusedError(f"{stack} is in UPDATE_IN_PROGRESS state and can not be updated")

    account = Late(state=state) if state else Late()
    ended = switch(monkeypatch, command, account, "--yes")
    assert ended.exit_code == ExitCode.OK, ended.output
    assert (account.updates, account.emptied) == ([asleep], [])


def test_wake_whose_update_cannot_be_read_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent(FakeSleepAccount):
        def set_asleep(self, stack: str, *, asleep: bool) -> None:
            self.unavailable = True
            super().set_asleep(stack, asleep=asleep)

    ended = switch(monkeypatch, "wake", Silent(state=ASLEEP, refusal="read timeout"), "--yes")
    assert ended.exit_code == ExitCode.UNKNOWN
    assert "Nothing was changed" not in ended.stderr


def test_wake_without_image_parameter_suggests_a_deployment(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = "Unable to fetch parameters [/my/image] from parameter store for this account."
    ended = switch(monkeypatch, "wake", FakeSleepAccount(state=ASLEEP, refusal=refusal), "--yes")
    assert ended.exit_code == ExitCode.NOT_READY
    assert "trn deploy -c trn:ami=AMI" in ended.stderr


EMPTY = DeployedNodes(wanted=0, instances=(), records={}, membership=VERIFIED.membership)
AWAKE = SleepState(status="UPDATE_COMPLETE", asleep=False, cluster="trn-pilot", groups=("nodes",))


def test_sleep_gives_nodes_notice_and_withdraws_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    messages: list[tuple[str, str]] = []

    class Leaving(FakeSleepAccount):
        """Nodes that end as soon as they are notified."""

        def announce(self, stack: str, notice: Notice) -> bool:
            self.running = 0
            return super().announce(stack, notice)

        def set_asleep(self, stack: str, *, asleep: bool) -> None:
            messages.extend((one.kind, one.reason) for one in self.stored_notices)
            super().set_asleep(stack, asleep=asleep)

    account = Leaving(state=AWAKE, running=2)
    assert switch(monkeypatch, "sleep", account, "--yes").exit_code == ExitCode.OK
    assert messages == [("sleep", "the cluster trn-pilot goes to sleep")]
    assert account.stored_notices == []


def test_interrupted_notice_keeps_the_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sleep_switching.time, "sleep", interrupt)
    account = FakeSleepAccount(state=AWAKE, running=2)
    answer = switch(monkeypatch, "sleep", account, "--yes")
    assert "the nodes keep running, and are billed. The notice to them was withdrawn." in answer.stderr
    assert (account.updates, account.stored_notices) == ([], [])


def test_notice_that_cannot_be_withdrawn_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent(FakeSleepAccount):
        """The request that withdraws the notice fails."""

        def withdraw(self, stack: str, kind: str) -> None:
            raise UnavailableError(f"no answer about {kind} of {stack}")

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sleep_switching.time, "sleep", interrupt)
    answer = switch(monkeypatch, "sleep", Silent(state=AWAKE, running=2), "--yes")
    assert "The notice to them might not have been withdrawn." in answer.stderr


@pytest.mark.parametrize("status", ["UPDATE_ROLLBACK_FAILED", "UPDATE_IN_PROGRESS"])
def test_nodes_of_stack_that_cannot_be_updated_end(monkeypatch: pytest.MonkeyPatch, status: str) -> None:
    account = FakeSleepAccount(state=replace(AWAKE, status=status), running=2)
    answer = switch(monkeypatch, "sleep", account, "--yes", "--grace", "0")
    assert (answer.exit_code, account.emptied, account.updates) == (ExitCode.NOT_READY, ["nodes"], [])
    assert "The nodes of trn-pilot are terminated." in answer.stderr
    assert f"TrnClusterStack is in {status}" in answer.stderr


def test_nodes_end_when_update_is_rolled_back(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = [event("UPDATE_FAILED", "the route is in use", of_stack=False), event("UPDATE_ROLLBACK_COMPLETE")]
    account = FakeSleepAccount(state=AWAKE, running=2, events_by_poll=[failed])
    answer = switch(monkeypatch, "sleep", account, "--yes", "--grace", "0")
    assert (answer.exit_code, account.emptied) == (ExitCode.NOT_READY, ["nodes"])
    assert "the route is in use" in answer.stderr
    assert answer.stderr.endswith(".\nRun `trn sleep` again once the stack can be updated.\n")


@pytest.mark.parametrize(
    ("nodes", "code", "message"),
    [
        ([BOOTING, UnavailableError("gone"), VERIFIED], ExitCode.OK, "awake: 2 of 2 nodes verified"),
        ([BOOTING, *[UnavailableError("gone")] * 3], ExitCode.UNKNOWN, "Unknown: gone"),
    ],
    ids=["one poll without an answer", "no more answers"],
)
def test_wake_of_awake_cluster_restores_nodes_ended_by_clock(
    monkeypatch: pytest.MonkeyPatch, nodes: list[DeployedNodes | Exception | None], code: ExitCode, message: str
) -> None:
    monkeypatch.setattr(sleep_switching, "AwsNodes", lambda _: FakeNodes(nodes))
    account = FakeSleepAccount(state=AWAKE)
    answer = switch(monkeypatch, "wake", account, "--yes")
    assert (answer.exit_code, account.sized, account.updates) == (code, {"nodes": 1}, [])
    assert message in answer.output


def test_nodes_end_when_update_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """For example when the image's parameter was deleted, which CloudFormation resolves at every update."""
    account = FakeSleepAccount(state=AWAKE, running=2, refusal="Unable to fetch parameters [/image]")
    answer = switch(monkeypatch, "sleep", account, "--yes", "--grace", "0")
    assert (answer.exit_code, account.emptied) == (ExitCode.NOT_READY, ["nodes"])
    assert "Unable to fetch parameters [/image]" in answer.stderr


def test_nodes_of_a_sleeping_cluster_end(monkeypatch: pytest.MonkeyPatch) -> None:
    account = FakeSleepAccount(state=replace(ASLEEP, groups=("nodes",)), running=1)
    answer = switch(monkeypatch, "sleep", account, "--yes", "--grace", "0")
    assert (answer.exit_code, account.emptied, account.updates) == (ExitCode.OK, ["nodes"], [])

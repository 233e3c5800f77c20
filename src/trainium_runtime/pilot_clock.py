"""The decision of a pilot's clock: how many nodes, why, and what else to do.

A pure function of the current state, so duplicate, late and out-of-order calls are harmless.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal, get_args

from trainium_runtime.facts import facts
from trainium_runtime.pilot_end import Deadline, pilot_start, utc_text


@dataclass(frozen=True, kw_only=True)
class PilotTerms:
    """The settings of a pilot's clock.

    Attributes:
        nodes: Number of nodes while the pilot runs.
        ends: The end of the pilot. None: no end.
        destroys: Whether the stack is deleted at the end.
        warning: How long before the end people are warned.
        budget_usd: The budget; None unless nodes stop when it is spent.
        in_capacity_block: Whether the nodes run in a Capacity Block.
        idle: How long nodes may be unused before they stop. None: no limit.
    """

    nodes: int
    ends: Deadline | None = None
    destroys: bool = False
    warning: timedelta = timedelta(hours=24)
    budget_usd: int | None = None
    in_capacity_block: bool = False
    idle: timedelta | None = None


@dataclass(frozen=True, kw_only=True)
class CapacityBlock:
    """EC2's description of a Capacity Block.

    Attributes:
        state: EC2's state, `active` once instances can be launched.
    """

    block_id: str
    instance_type: str
    begins: datetime
    ends: datetime
    state: str


@dataclass(frozen=True, kw_only=True)
class SpentBudget:
    """A budget in US dollars that AWS Budgets reported as spent, and when it first did."""

    usd: int
    since: datetime

    @classmethod
    def from_text(cls, text: str) -> "SpentBudget":
        """Parse the result of `str`.

        Raises:
            ValueError: The text has another form.
        """
        usd, _, since = text.partition(" since ")
        return cls(usd=int(usd), since=datetime.fromisoformat(since))

    def __str__(self) -> str:
        return f"{self.usd} since {utc_text(self.since)}"


StopKind = Literal["end", "budget", "capacity-block", "idle"]


@dataclass(frozen=True)
class Stopped:
    """Why the clock stopped the nodes.

    Attributes:
        detail: The end, the budget in US dollars, or since when the nodes were idle; empty for a Capacity Block.
    """

    kind: StopKind
    detail: str = ""

    @classmethod
    def from_text(cls, text: str) -> "Stopped":
        """Parse the result of `str`.

        Raises:
            ValueError: The text has another form.
        """
        name, _, detail = text.partition(" ")
        kinds: tuple[StopKind, ...] = get_args(StopKind)
        for kind in kinds:
            if kind == name:
                return cls(kind, detail)
        raise ValueError(f"{text!r} is not a reason of the clock")

    def __str__(self) -> str:
        return f"{self.kind} {self.detail}".strip()


@dataclass(frozen=True, kw_only=True)
class Memory:
    """The state stored by earlier looks.

    Attributes:
        notified: The last notice about the end.
        stopped: Why the nodes are stopped.
        spent: The budget that was spent.
        idle: When unused nodes stop, from the last notice about it.
    """

    notified: str | None = None
    stopped: Stopped | None = None
    spent: SpentBudget | None = None
    idle: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class ClockDecision:
    """What to do now.

    Attributes:
        nodes: Desired number of nodes.
        why: A sentence for people.
        stopped: Why the nodes are stopped, to be stored.
        warn_of: The end to warn people of now.
        notice: A notice for jobs, to be written now.
        ended: When the pilot ended; None if it has not.
        delete: Whether to delete the stack after the nodes.
        spent: The spent budget, to be stored.
        idle: A notice for people that unused nodes will stop, to be sent now.
    """

    nodes: int
    why: str
    stopped: Stopped | None = None
    warn_of: datetime | None = None
    notice: "StopNotice | None" = None
    ended: datetime | None = None
    delete: bool = False
    spent: SpentBudget | None = None
    idle: "StopNotice | None" = None


@dataclass(frozen=True, kw_only=True)
class StopNotice:
    """When and why nodes will stop."""

    at: datetime
    reason: str


def clock_decision(
    *,
    now: datetime,
    terms: PilotTerms,
    deployed: datetime,
    block: CapacityBlock | None,
    asleep: bool,
    memory: Memory,
    budget_reached: bool = False,
    nodes_wanted: bool = True,
    idle_since: datetime | None = None,
    deploying: bool = False,
) -> ClockDecision:
    """Decide what to do now.

    Args:
        deployed: When the stack was created.
        block: The Capacity Block of the nodes. None if there is none, or if EC2 no longer has it.
        asleep: Whether `trn sleep` put the cluster to sleep.
        memory: The state stored by earlier looks.
        budget_reached: Whether AWS Budgets just reported the budget as spent.
        nodes_wanted: Whether the group has a size above 0.
        idle_since: Since when the nodes are unused. None if they are in use or their usage is unknown.
        deploying: Whether a deployment waits for nodes, which are then launched even if earlier ones were unused.
    """
    spent = _spent(terms, memory, now, reached=budget_reached)
    decision = _decide(now, terms, deployed, block, asleep=asleep, memory=memory, spent=spent, wanted=nodes_wanted)
    if decision.nodes and terms.idle and not deploying:
        decision = _unless_idle(decision, now, terms.idle, idle_since, memory, wanted=nodes_wanted)
    return replace(decision, spent=spent)


def _unless_idle(
    decision: ClockDecision,
    now: datetime,
    limit: timedelta,
    since: datetime | None,
    memory: Memory,
    *,
    wanted: bool,
) -> ClockDecision:
    """Stop unused nodes after the limit, until a person launches them again."""
    minutes = limit // timedelta(minutes=1)
    unused = f"no job and no NeuronCore was in use for {minutes} minutes"
    if not wanted:
        stopped = memory.stopped if memory.stopped and memory.stopped.kind == "idle" else None
        return replace(decision, nodes=0, why=unused, stopped=stopped, notice=None) if stopped else decision
    if since is None:
        return decision
    if now >= since + limit:
        stopped = Stopped("idle", utc_text(_minute(since)))
        return replace(decision, nodes=0, why=unused, stopped=stopped, notice=None)
    stop = since + limit
    # Nodes report the start of their idle time to the minute, so times that are close get one notice.
    notified = memory.idle is not None and abs(stop - memory.idle) < notice_period()
    if now < stop - notice_period() or notified:
        return decision
    reason = f"no job and no NeuronCore has been in use since {utc_text(_minute(since))}"
    return replace(decision, idle=StopNotice(at=_minute(stop), reason=reason))


def _minute(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)


def _decide(
    now: datetime,
    terms: PilotTerms,
    deployed: datetime,
    block: CapacityBlock | None,
    *,
    asleep: bool,
    memory: Memory,
    spent: SpentBudget | None,
    wanted: bool,
) -> ClockDecision:
    begins = block.begins if block else None
    ends = terms.ends.instant(deployed, begins) if terms.ends else None
    if ends and ends <= now:
        why, stopped = f"the pilot ended at {utc_text(ends)}", Stopped("end", utc_text(ends))
        return ClockDecision(nodes=0, why=why, stopped=stopped, ended=ends, delete=terms.destroys)
    is_near = ends is not None and now >= warning_time(terms, pilot_start(deployed, begins))
    warned_of = ends if ends and is_near and memory.notified != warning_mark(ends) else None
    if spent and (now >= _stop_notice(spent).at or memory.stopped == _stopped_by(spent) or not wanted):
        return _stop(_spent_reason(spent), _stopped_by(spent), warn_of=warned_of)
    if asleep:
        return ClockDecision(nodes=0, why="the cluster is asleep", warn_of=warned_of)
    if terms.in_capacity_block and (reason := _unusable_block(block, now)):
        return _stop(reason, Stopped("capacity-block"), warn_of=warned_of)
    notice = _notice(ends, block if terms.in_capacity_block else None, spent, now)
    return ClockDecision(nodes=terms.nodes, why="the pilot runs", warn_of=warned_of, notice=notice)


def warning_mark(ends: datetime) -> str:
    """The stored mark that people were warned of an end."""
    return f"warned of {utc_text(ends)}"


def warning_time(terms: PilotTerms, start: datetime) -> datetime:
    """When to warn of the end: the configured time before it, but not before the middle of the pilot.

    Args:
        start: The start of the pilot.

    Raises:
        ValueError: The pilot has no end.
    """
    if terms.ends is None:
        raise ValueError("a pilot without an end has no warning")
    ends = terms.ends.instant(start)
    return ends - min(terms.warning, (ends - start) / 2)


def termination_minutes(instance_type: str) -> int:
    """The minutes before the end of a Capacity Block at which EC2 starts to terminate its instances."""
    limits = facts()["capacity_blocks"]
    is_ultraserver = instance_type in limits["ultraserver_types"]
    return limits["minutes_of_termination_of_ultraservers" if is_ultraserver else "minutes_of_termination"]


def stops_before_block_end(instance_type: str) -> timedelta:
    """The time before the end of a Capacity Block at which the clock stops its nodes, before EC2 terminates them."""
    ahead: int = facts()["pilot"]["minutes_before_termination_of_block"]
    return timedelta(minutes=termination_minutes(instance_type) + ahead)


def notice_period() -> timedelta:
    """The time between the notice to jobs and the stop of their nodes."""
    return timedelta(minutes=facts()["pilot"]["minutes_of_notice"])


def notice_before_block_end(instance_type: str) -> timedelta:
    """The time before the end of a Capacity Block at which jobs get a notice."""
    return stops_before_block_end(instance_type) + notice_period()


def _spent(terms: PilotTerms, memory: Memory, now: datetime, *, reached: bool) -> SpentBudget | None:
    """The plan's budget if it is spent and has not been changed since."""
    if terms.budget_usd is None:
        return None
    if memory.spent and memory.spent.usd == terms.budget_usd:
        return memory.spent
    spent = SpentBudget(usd=terms.budget_usd, since=now)
    return spent if reached or memory.stopped == _stopped_by(spent) else None


def _spent_reason(spent: SpentBudget) -> str:
    return f"the budget of ${spent.usd:,} is spent"


def _stopped_by(spent: SpentBudget) -> Stopped:
    return Stopped("budget", str(spent.usd))


def _stop_notice(spent: SpentBudget) -> StopNotice:
    return StopNotice(at=spent.since + notice_period(), reason=_spent_reason(spent))


def _notice(
    ends: datetime | None, block: CapacityBlock | None, spent: SpentBudget | None, now: datetime
) -> StopNotice | None:
    """The notice for the earliest stop of the nodes, once it is near."""
    coming: list[StopNotice] = [_stop_notice(spent)] if spent else []
    if ends:
        coming.append(StopNotice(at=ends, reason=f"the pilot ends at {utc_text(ends)}"))
    if block:
        of_block = f"Capacity Block {block.block_id} ends at {utc_text(block.ends)}; nodes stop before"
        coming.append(StopNotice(at=block.ends - stops_before_block_end(block.instance_type), reason=of_block))
    first = min(coming, key=lambda notice: notice.at, default=None)
    return first if first and now >= first.at - notice_period() else None


def _unusable_block(block: CapacityBlock | None, now: datetime) -> str | None:
    """Why nodes cannot run in the Capacity Block now; None if they can."""
    if block is None:
        return "the Capacity Block does not exist in EC2"
    name = f"Capacity Block {block.block_id}"
    if now >= block.ends - stops_before_block_end(block.instance_type):
        minutes = stops_before_block_end(block.instance_type) // timedelta(minutes=1)
        return f"{name} ends at {utc_text(block.ends)}; nodes stop {minutes} minutes before"
    if now < block.begins:
        return f"{name} begins at {utc_text(block.begins)}; the nodes launch then"
    if block.state != "active":
        return f"{name} is {block.state}; the nodes launch once it is active"
    return None


def _stop(why: str, stopped: Stopped, *, warn_of: datetime | None) -> ClockDecision:
    return ClockDecision(nodes=0, why=why, stopped=stopped, warn_of=warn_of)

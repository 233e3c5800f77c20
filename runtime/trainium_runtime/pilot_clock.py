"""What the clock of a pilot says at a moment: how many nodes there are to be, why, and what is done besides.

A pure function of what is known now: whoever asks twice, late or out of order gets what is right then.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from trainium_runtime.facts import facts
from trainium_runtime.pilot_end import PilotEnd, utc_text


@dataclass(frozen=True, kw_only=True)
class PilotTerms:
    """What a plan says of a pilot's end. budget_usd: None unless the nodes stop once it is spent."""

    nodes: int
    ends: PilotEnd | None = None
    destroys: bool = False
    warning: timedelta = timedelta(hours=24)
    budget_usd: int | None = None
    in_capacity_block: bool = False


@dataclass(frozen=True, kw_only=True)
class CapacityBlock:
    """A Capacity Block as EC2 describes it now. `state` is EC2's word: `active` once instances can be launched."""

    block_id: str
    begins: datetime
    ends: datetime
    state: str


@dataclass(frozen=True, kw_only=True)
class Memory:
    """What earlier looks left behind. told: the last that was told of the end; stopped: why there are no nodes."""

    told: str | None = None
    stopped: str | None = None


@dataclass(frozen=True, kw_only=True)
class ClockDecision:
    """nodes: how many are right now. why: a sentence. stopped: what to remember of why there are none.

    warn_of: the end that somebody is to be told of now. notice: what jobs are to be told of now. ended: when the pilot
    did. delete: whether the stack is to go, once the nodes are gone.
    """

    nodes: int
    why: str
    stopped: str | None = None
    warn_of: datetime | None = None
    notice: "StopNotice | None" = None
    ended: datetime | None = None
    delete: bool = False


@dataclass(frozen=True, kw_only=True)
class StopNotice:
    """That nodes stop soon: when, and why."""

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
) -> ClockDecision:
    """Decide. deployed: when the stack was created. budget_reached: AWS Budgets just said that the budget is spent.

    block: None when there is none, or none that EC2 knows any more.
    """
    ends = terms.ends.instant(deployed) if terms.ends else None
    if ends and ends <= now:
        why, stopped = f"the pilot ended at {utc_text(ends)}", f"end {utc_text(ends)}"
        return ClockDecision(nodes=0, why=why, stopped=stopped, ended=ends, delete=terms.destroys)
    warned_of = ends if ends and now >= warning_time(terms, deployed) and memory.told != warning_of(ends) else None
    spent = f"budget {terms.budget_usd}"
    if terms.budget_usd is not None and (budget_reached or memory.stopped == spent):
        return _stop(f"the budget of ${terms.budget_usd:,} is spent", spent, warn_of=warned_of)
    if asleep:
        return ClockDecision(nodes=0, why="the cluster is asleep", warn_of=warned_of)
    if terms.in_capacity_block and (reason := _outside(block, now)):
        return _stop(reason, "capacity block", warn_of=warned_of)
    notice = _notice(ends, block if terms.in_capacity_block else None, now)
    return ClockDecision(nodes=terms.nodes, why="the pilot runs", warn_of=warned_of, notice=notice)


def warning_of(ends: datetime) -> str:
    """What is remembered once somebody was warned of an end."""
    return f"warned of {utc_text(ends)}"


def warning_time(terms: PilotTerms, deployed: datetime) -> datetime:
    """When the end is warned of: the wanted time before it, but at half time of a pilot shorter than twice that.

    Raises ValueError when the pilot has no end.
    """
    if terms.ends is None:
        raise ValueError("a pilot without an end is warned of none")
    ends = terms.ends.instant(deployed)
    return ends - min(terms.warning, (ends - deployed) / 2)


def stops_before_block_end() -> timedelta:
    """How long before its end a Capacity Block is left: before EC2 terminates what runs in it."""
    known = facts()
    termination: int = known["capacity_blocks"]["minutes_of_termination"]
    return timedelta(minutes=termination + known["pilot"]["minutes_before_termination_of_block"])


def _notice(ends: datetime | None, block: CapacityBlock | None, now: datetime) -> StopNotice | None:
    """Of the first moment at which nodes stop, once it is near."""
    coming: list[StopNotice] = []
    if ends:
        coming.append(StopNotice(at=ends, reason=f"the pilot ends at {utc_text(ends)}"))
    if block:
        of_block = f"Capacity Block {block.block_id} ends at {utc_text(block.ends)}; nodes stop before"
        coming.append(StopNotice(at=block.ends - stops_before_block_end(), reason=of_block))
    first = min(coming, key=lambda notice: notice.at, default=None)
    early = timedelta(minutes=facts()["pilot"]["minutes_of_notice"])
    return first if first and now >= first.at - early else None


def _outside(block: CapacityBlock | None, now: datetime) -> str | None:
    """Why no node can run in the Capacity Block now; None while nodes can."""
    if block is None:
        return "EC2 does not know the Capacity Block (any more)"
    name = f"Capacity Block {block.block_id}"
    if now >= block.ends - stops_before_block_end():
        minutes = stops_before_block_end() // timedelta(minutes=1)
        return f"{name} ends at {utc_text(block.ends)}; nodes stop {minutes} minutes before"
    if now < block.begins:
        return f"{name} begins at {utc_text(block.begins)}; the nodes come up by themselves then"
    if block.state != "active":
        return f"{name} is {block.state}, not yet active; the nodes come up by themselves then"
    return None


def _stop(why: str, stopped: str, *, warn_of: datetime | None) -> ClockDecision:
    return ClockDecision(nodes=0, why=why, stopped=stopped, warn_of=warn_of)

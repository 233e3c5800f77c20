"""The record of a job: duration and cost of each phase, attempt and restart, one JSON object per line.

It is computed from the records in S3, or from SageMaker's description of the job, so the job need not be followed.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

from trainium_core.jobs.progress import JobState
from trainium_wire.formats import moment, time_text
from trainium_wire.job import Outcome
from trainium_wire.job_progress import Attempt, NodeProgress

WITHIN_RUNNING = ("first_step", "checkpoints")
"""Phases that run in parallel with the command: `running` includes them."""

_AFTER_START = ("running", "results", *WITHIN_RUNNING)
_HOUR = 3600


@dataclass(frozen=True, kw_only=True)
class Restart:
    """The time that a restart after a failed attempt costs. Durations are in seconds; None if unknown.

    Attributes:
        attempt: Number of the attempt after the restart.
        checkpoint: The checkpoint that this attempt continues from, if any.
        lost: Work since that checkpoint, or since the start of the command without one. The script lost less if it
            continues from newer outputs.
        waited: Time until the attempt started.
        begun: Time from the attempt's start to the first step, or to the start of the command if the script does not
            print steps.
    """

    attempt: int
    checkpoint: str | None
    lost: float | None
    waited: float | None
    begun: float | None

    @property
    def seconds(self) -> float | None:
        """The sum of the known durations; None if all are unknown."""
        return _sum((self.lost, self.waited, self.begun))

    @property
    def node_seconds(self) -> float | None:
        """As `seconds`, without the time until the attempt started."""
        return _sum((self.lost, self.begun))


def _sum(parts: Iterable[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


def attempt_records(state: JobState, usd_per_hour: Decimal | None) -> Iterator[Mapping[str, Any]]:
    """The lines of the record, attempt by attempt.

    Every line has `event`. If the job itself is billed, only its end has a cost, for the billed seconds. If the job has
    its own nodes, the time before and between attempts has no cost.

    Args:
        state: The state with every node of every attempt.
        usd_per_hour: Cost of the job's machines per hour. None if unknown: every `usd` is then None.
    """
    of_phases = None if state.is_billed else usd_per_hour

    def costs(seconds: float | None) -> dict[str, Any]:
        return {"seconds": None if seconds is None else round(seconds, 3), "usd": _usd(seconds, of_phases)}

    def nodes_usd(seconds: float | None) -> dict[str, Any]:
        """The cost of a period that includes time before or between attempts, if the job has its own nodes."""
        return {"usd": _usd(seconds, of_phases)} if state.has_own_nodes else {}

    job = state.job
    submitted = moment(job.submitted_at)
    yield {
        "event": "submitted",
        "job": job.id,
        "at": job.submitted_at,
        "by": job.submitted_by or None,
        "nodes": job.nodes,
        "processes_per_node": job.processes_per_node,
        "resume_from": job.resume_from,
        "profile": list(job.profile),
        "usd_per_hour": None if usd_per_hour is None else float(usd_per_hour),
    }
    if job.waking_seconds is not None:
        yield {"event": "phase", "attempt": None, "phase": "waking", **costs(job.waking_seconds)}
    if state.attempts:
        yield {
            "event": "phase",
            "attempt": None,
            "phase": "queued",
            **costs(seconds_between(submitted, state.attempts[0].started)),
            **nodes_usd(None),
        }
    restarts = {restart.attempt: restart for restart in restart_counts(state)}
    for attempt in state.attempts:
        number = attempt.number
        if number in restarts:
            restart = restarts[number]
            parts = {"lost_seconds": restart.lost, "waited_seconds": restart.waited, "begun_seconds": restart.begun}
            of_restart = {
                "checkpoint": restart.checkpoint,
                **parts,
                **costs(restart.seconds),
                **nodes_usd(restart.node_seconds),
            }
            yield {"event": "restart", "attempt": number, **of_restart}
        yield {
            "event": "attempt",
            "attempt": number,
            "at": time_text(attempt.started) if attempt.started else None,
            "instance_ids": attempt.instance_ids,
            "resume_from": attempt.resume_from,
        }
        for name, node in _slowest(attempt).items():
            within = {"within": "running"} if name in WITHIN_RUNNING else {}
            yield {
                "event": "phase",
                "attempt": number,
                "phase": name,
                "node": node.node,
                **within,
                **costs(_phase_seconds(attempt, node, name)),
            }
        for node in attempt.nodes:
            graphs = graph_counts(node)
            if graphs:
                yield {"event": "graphs", "attempt": number, "node": node.node, "graphs": graphs}
            if node.observed:
                yield {"event": "observed", "attempt": number, "node": node.node, **asdict(node.observed)}
            if node.utilization:
                yield {"event": "utilization", "attempt": number, "node": node.node, **asdict(node.utilization)}
            if node.progress:
                yield {"event": "progress", "attempt": number, "node": node.node, "progress": node.progress}
        if attempt.outcome is not None:
            lasted = seconds_between(attempt.started, attempt.outcome.at)
            yield {"event": "attempt-end", "attempt": number, **_end(attempt.outcome), **costs(lasted)}
    if state.outcome is not None:
        lasted = seconds_between(submitted, state.freed_at)
        billed = {"billed_seconds": state.billed_seconds, "usd": _usd(state.billed_seconds, usd_per_hour)}
        more = billed if state.is_billed else nodes_usd(attempt_seconds(state))
        yield {"event": "end", "attempts": len(state.attempts), **_end(state.outcome), **costs(lasted), **more}


def _usd(seconds: float | None, usd_per_hour: Decimal | None) -> float | None:
    if seconds is None or usd_per_hour is None:
        return None
    return float(round(usd_per_hour * Decimal(str(seconds)) / _HOUR, 4))


def attempt_seconds(state: JobState) -> float | None:
    """The sum of the durations of the attempts, until now if the last one is running; None if no start is known.

    An attempt without an outcome ends with the start of the next attempt. The last one ends with the job, when its
    nodes have stored their results.
    """
    ends = [
        (attempt.outcome.at if attempt.outcome else None) or following.started
        for attempt, following in pairwise(state.attempts)
    ]
    if state.attempts:
        outcome = state.outcome or state.attempts[-1].outcome
        ends.append(state.freed_at or (outcome.at if outcome else None) or datetime.now(UTC))
    return _sum(seconds_between(attempt.started, end) for attempt, end in zip(state.attempts, ends, strict=True))


def graph_counts(node: NodeProgress) -> Mapping[str, float]:
    """The numbers of compiled and cached graphs, from the node's compile cache or, if unknown, from its output.

    Only the compile cache measures `compile_seconds`.
    """
    counted = next((use for use in node.caches if use.hits is not None and use.hits + use.misses), None)
    if counted is None:
        return node.graphs
    return {"compiled": counted.misses, "cached": counted.hits or 0, "compile_seconds": counted.compile_seconds}


def restart_counts(state: JobState) -> Iterator[Restart]:
    """The restarts: one for each attempt after the first."""
    for before, attempt in pairwise(state.attempts):
        ended = before.outcome.at if before.outcome else None
        compute = _preparation(before)
        worked = seconds_between(before.started, ended)
        lost = None
        if worked is not None:
            saved = seconds_between(attempt.checkpoint_at, ended)
            lost = max(0.0, min(worked - (compute or 0), worked if saved is None else saved))
        first_step = attempt.nodes[0].phases.get("first_step", 0) if attempt.nodes else 0
        begun = _preparation(attempt)
        yield Restart(
            attempt=attempt.number,
            checkpoint=attempt.resume_from,
            lost=lost,
            waited=seconds_between(ended, attempt.started),
            begun=None if begun is None else begun + first_step,
        )


def _preparation(attempt: Attempt) -> float | None:
    """Seconds from the start of an attempt to the start of its command on its first node."""
    if not attempt.nodes:
        return None
    return sum(seconds for name, seconds in attempt.nodes[0].phases.items() if name not in _AFTER_START)


def _slowest(attempt: Attempt) -> Mapping[str, NodeProgress]:
    """The slowest node of each phase."""
    names = dict.fromkeys(name for node in attempt.nodes for name in node.phases)
    return {name: max(attempt.nodes, key=lambda node: node.phases.get(name, -1)) for name in names}


def _phase_seconds(attempt: Attempt, node: NodeProgress, name: str) -> float:
    """Seconds of a phase. `running` ends with the attempt at the latest: a node that cannot reach S3 runs longer."""
    seconds = node.phases[name]
    lasted = seconds_between(attempt.started, attempt.outcome.at if attempt.outcome else None)
    return seconds if lasted is None or name != "running" else min(seconds, lasted)


def _end(outcome: Outcome) -> Mapping[str, Any]:
    return {
        "at": time_text(outcome.at) if outcome.at else None,
        "result": outcome.result,
        "reason": outcome.reason,
        "node": outcome.node,
        "rank": outcome.rank,
        "exit_code": outcome.exit_code,
    }


def seconds_between(first: datetime | None, last: datetime | None) -> float | None:
    """Seconds between two times, at least 0 because the clocks of two machines differ; None if a time is unknown."""
    return None if first is None or last is None else max(0.0, (last - first).total_seconds())

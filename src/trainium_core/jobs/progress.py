"""Where a job stands, by what its nodes have written. Any process of a node can write there: nothing is believed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeGuard, cast

from trainium_core.jobs.cache_use import CacheUse, cache_uses
from trainium_core.jobs.job import Job
from trainium_runtime.stored_record import one_line

SUCCEEDED, FAILED, NODE_LOST = "succeeded", "failed", "node-lost"
HUNG, STOPPED, INTERRUPTED, TIME_LIMIT = "hung", "stopped", "interrupted", "time-limit"
ENDING = "ending"
"""The status of a job whose last attempt is over, and it itself not yet."""
RESULTS = (SUCCEEDED, FAILED, NODE_LOST, HUNG, STOPPED, INTERRUPTED, TIME_LIMIT)

_LONGEST_REASON = 600
_LONGEST_TRACEBACK = 8000


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How an attempt or a job ended. node, rank: of the first failure; None where it is no single one's."""

    result: str
    reason: str = ""
    traceback: str = ""
    instance_id: str = ""
    node: int | None = None
    rank: int | None = None
    exit_code: int | None = None
    at: datetime | None = None

    @property
    def is_success(self) -> bool:
        return self.result == SUCCEEDED


@dataclass(frozen=True, kw_only=True)
class NodeProgress:
    """One node of an attempt. phases: seconds by name; progress: the last line of the form `TRN step=…`, of node 0.

    graphs: how many were compiled, and how many found in the cache; empty while nothing printed either.
    caches: what was used of each compile cache.
    """

    node: int
    instance_id: str
    state: str
    at: datetime | None
    phases: Mapping[str, float] = field(default_factory=dict[str, float])
    progress: Mapping[str, str] = field(default_factory=dict[str, str])
    graphs: Mapping[str, int] = field(default_factory=dict[str, int])
    caches: tuple[CacheUse, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One start of the job on all its nodes. instance_ids: in the order of their ranks. outcome: None while it runs.

    checkpoint_at: when the checkpoint that it goes on from was saved. reporting: how many nodes have written where they
    stand. nodes: those of them that were read.
    """

    number: int
    started: datetime | None
    instance_ids: tuple[str, ...]
    resume_from: str | None
    checkpoint_at: datetime | None = None
    reporting: int = 0
    nodes: tuple[NodeProgress, ...] = ()
    outcome: Outcome | None = None


@dataclass(frozen=True, kw_only=True)
class JobState:
    """A job with its attempts. outcome: None until it is over. stopping: `trn stop` has asked for its end."""

    job: Job
    attempts: tuple[Attempt, ...]
    outcome: Outcome | None
    stopping: bool = False

    @property
    def is_over(self) -> bool:
        return self.outcome is not None

    @property
    def status(self) -> str:
        """One word or two: how it ended, else what is waited for."""
        if self.outcome is not None:
            return self.outcome.result
        if self.stopping:
            return "stopping"
        if not self.attempts:
            return "waiting for the nodes"
        last = self.attempts[-1]
        if last.outcome is not None:
            return f"{last.outcome.result}, waiting for the nodes" if self._is_retried else ENDING
        states = {node.state for node in last.nodes}
        if last.reporting < self.job.nodes or states <= {"source", "inputs", "setup", "compile_cache"}:
            return "starting"
        return "running"

    @property
    def _is_retried(self) -> bool:
        """Whether another attempt follows the last one, which has ended: what the nodes decide by the same rules."""
        job, outcome = self.job, self.attempts[-1].outcome
        if outcome is None or self.stopping or len(self.attempts) > job.retries:
            return False
        code = outcome.exit_code
        # That of a process that a signal ended is negative here, and 128 and the signal's number in shells.
        shell_exit_code = 128 - code if code is not None and code < 0 else code
        return (
            outcome.result == NODE_LOST
            or (outcome.result == HUNG and job.retry_on_hang)
            or (outcome.result == FAILED and shell_exit_code in job.retry_on_exit_codes)
        )


def outcome_of(raw: Mapping[str, Any]) -> Outcome:
    """What a node wrote of an end, cut to what people can read; what is no result counts as failed."""
    result = raw.get("result")
    return Outcome(
        result=cast(str, result) if result in RESULTS else FAILED,
        reason=one_line(_text(raw.get("reason")), _LONGEST_REASON),
        traceback=_printable(_text(raw.get("traceback")))[-_LONGEST_TRACEBACK:],
        instance_id=one_line(_text(raw.get("instance_id")), 32),
        node=_to_int(raw.get("node")),
        rank=_to_int(raw.get("rank")),
        exit_code=_to_int(raw.get("exit_code")),
        at=moment(raw.get("at")),
    )


def node_progress(node: int, raw: Mapping[str, Any]) -> NodeProgress:
    return NodeProgress(
        node=node,
        instance_id=one_line(_text(raw.get("instance_id")), 32),
        state=one_line(_text(raw.get("state")), 16) or "unknown",
        at=moment(raw.get("at")),
        phases={one_line(str(key), 20): value for key, value in _items(raw.get("phases")) if _is_duration(value)},
        progress={
            one_line(str(key), 40): one_line(str(value), 40)
            for key, value in _items(raw.get("progress"))
            if value is not None
        },
        graphs={
            one_line(str(key), 20): value
            for key, value in _items(raw.get("graphs"))
            if isinstance(value, int) and not isinstance(value, bool)
        },
        caches=cache_uses(raw.get("compile_caches")),
    )


def attempt_of(
    number: int,
    start: Mapping[str, Any],
    end: Mapping[str, Any] | None,
    *,
    nodes: Sequence[NodeProgress],
    reporting: int,
    checkpoint_at: datetime | None = None,
) -> Attempt:
    members = start.get("nodes")
    named = cast("list[Any]", members) if isinstance(members, list) else []
    ids = [_text(cast("Mapping[str, Any]", one).get("instance_id")) for one in named if isinstance(one, Mapping)]
    checkpoint = start.get("resume_from")
    return Attempt(
        number=number,
        started=moment(start.get("at")),
        instance_ids=tuple(one_line(one, 32) for one in ids),
        resume_from=one_line(checkpoint, 200) if isinstance(checkpoint, str) else None,
        checkpoint_at=checkpoint_at,
        reporting=reporting,
        nodes=tuple(sorted(nodes, key=lambda one: one.node)),
        outcome=None if end is None else outcome_of(end),
    )


def moment(raw: object) -> datetime | None:
    """A time as nodes write it; None for what is none."""
    try:
        return datetime.strptime(cast(str, raw), "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except (TypeError, ValueError):
        return None


def _items(raw: object) -> list[tuple[object, object]]:
    return list(cast("Mapping[object, object]", raw).items()) if isinstance(raw, Mapping) else []


def _is_duration(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9


def _text(raw: object) -> str:
    return raw if isinstance(raw, str) else ""


def _to_int(raw: object) -> int | None:
    return raw if isinstance(raw, int) and not isinstance(raw, bool) else None


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() or character in "\n\t" else " " for character in text)

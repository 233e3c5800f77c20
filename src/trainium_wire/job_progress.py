"""The progress of a job, from its nodes' records. Any process of a node can write these, so every value is
validated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, cast

from trainium_wire.formats import empty, moment, one_line
from trainium_wire.job import FAILED, RESULTS_LOST, SUCCEEDED, Outcome
from trainium_wire.metric_sample import Utilization, utilization

_MAX_CACHES = 4
_MAX_TEXTS, _MAX_MISSED = 10, 50
_MAX_DEVICE_ERRORS = 5
_LONGEST_TEXT = 600
_FINAL_STATES = (SUCCEEDED, RESULTS_LOST, FAILED, "ended")


@dataclass(frozen=True)
class CacheUse:
    """Usage of the compile cache of one software stack on one node.

    Attributes:
        stack: The software stack, such as native or xla.
        place: S3 prefix of the entries, below the cache's URL.
        at_start: Entries in the folder before the command.
        hits: Entries from the start that were read; None if unknown.
        misses: Entries that were compiled, successfully or not.
        fetched, stored: Entries that were downloaded, and uploaded.
        renewed: Entries whose age in S3 was reset.
        recompiled: Entries that were compiled successfully after the first step.
        reasons: Number of misses by likeliest reason.
        missed: Some misses, each with its reason.
        removed: Entries of an earlier job that were deleted from the folder, each with the reason.
        failed: Entries that failed to compile, each with the compiler's last line.
    """

    stack: str
    place: str = ""
    at_start: int = 0
    hits: int | None = None
    misses: int = 0
    compile_seconds: float = 0
    fetched: int = 0
    fetched_bytes: int = 0
    stored: int = 0
    stored_bytes: int = 0
    renewed: int = 0
    recompiled: int = 0
    reasons: Mapping[str, int] = field(default_factory=empty)
    missed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Observed:
    """Counters of the frameworks on one node.

    Attributes:
        processes: Number of processes of the node that have written counters.
        stack: native or xla.
        fallbacks: For each operator that ran on the CPU, the highest number of its calls in any process.
        compiled: The highest number of compiled graphs in any process.
        compile_seconds: The longest time of compilation in any process.
        reasons: Number of compilations by reason.
        errors: Number of lines of output by error code of the compiler.
    """

    processes: int
    stack: str = ""
    fallbacks: Mapping[str, int] = field(default_factory=empty)
    compiled: int = 0
    compile_seconds: float = 0
    reasons: Mapping[str, int] = field(default_factory=empty)
    errors: Mapping[str, int] = field(default_factory=empty)


@dataclass(frozen=True)
class NodeProgress:
    """One node of an attempt.

    Attributes:
        node: Rank of the node.
        state: Current phase, or how the node's part of the attempt ended.
        at: Time of the report.
        phases: Seconds by phase.
        progress: Values of the last `TRN step=…` line of rank 0, or of a command without ranks, and rates.
        graphs: Number of compiled and of cached graphs; empty if unknown.
        caches: Usage of each compile cache.
        lost: Results that did not reach S3, and why; empty if none.
        unstored: A clause on the outputs that are not in S3 if the node is lost after this report; empty if none.
        device_errors: The devices that counted uncorrectable errors in the attempt, each as a sentence, once it has
            ended.
        observed: None for a job without `observe`.
        utilization: None if the node does not measure it.
    """

    node: int
    instance_id: str
    state: str
    at: datetime | None
    phases: Mapping[str, float] = field(default_factory=empty)
    progress: Mapping[str, str] = field(default_factory=empty)
    graphs: Mapping[str, int] = field(default_factory=empty)
    caches: tuple[CacheUse, ...] = ()
    lost: str = ""
    unstored: str = ""
    device_errors: tuple[str, ...] = ()
    observed: Observed | None = None
    utilization: Utilization | None = None

    @property
    def has_ended(self) -> bool:
        """Whether the node has stored what it can."""
        return self.state in _FINAL_STATES


@dataclass(frozen=True)
class Attempt:
    """One start of the job on all its nodes.

    Attributes:
        number: Number of the attempt, from 1.
        instance_ids: Instances of the nodes, in the order of ranks.
        resume_from: Name of the checkpoint that the attempt continues from, if any.
        checkpoint_at: When the checkpoint that the attempt continues from was saved.
        reporting: Number of nodes that have reported their progress.
        nodes: The reports that were read.
        outcome: None while the attempt runs.
    """

    number: int
    started: datetime | None
    instance_ids: tuple[str, ...]
    resume_from: str | None
    checkpoint_at: datetime | None = None
    reporting: int = 0
    nodes: tuple[NodeProgress, ...] = ()
    outcome: Outcome | None = None


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
        lost=one_line(_text(raw.get("lost")), _LONGEST_TEXT),
        unstored=one_line(_text(raw.get("unstored")), _LONGEST_TEXT),
        device_errors=_texts(raw.get("device_errors"), _MAX_DEVICE_ERRORS),
        observed=_observed(raw.get("observed")),
        utilization=utilization(raw.get("utilization")),
    )


def _observed(raw: object) -> Observed | None:
    if not isinstance(raw, Mapping):
        return None
    counters = cast("Mapping[str, Any]", raw)
    return Observed(
        processes=_count(counters.get("processes")),
        stack=one_line(_text(counters.get("stack")), 16),
        compiled=_count(counters.get("compiled")),
        compile_seconds=_seconds(counters.get("compile_seconds")),
        fallbacks=_counts(counters.get("fallbacks")),
        reasons=_counts(counters.get("reasons")),
        errors=_counts(counters.get("errors")),
    )


def _counts(raw: object) -> Mapping[str, int]:
    return {one_line(str(key), 200): _count(value) for key, value in _items(raw)[:_MAX_MISSED]}


def attempt_state(
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
    ids = [_text(cast("Mapping[str, Any]", node).get("instance_id")) for node in named if isinstance(node, Mapping)]
    checkpoint = start.get("resume_from")
    return Attempt(
        number=number,
        started=moment(start.get("at")),
        instance_ids=tuple(one_line(instance_id, 32) for instance_id in ids),
        resume_from=one_line(checkpoint, 200) if isinstance(checkpoint, str) else None,
        checkpoint_at=checkpoint_at,
        reporting=reporting,
        nodes=tuple(sorted(nodes, key=lambda progress: progress.node)),
        outcome=outcome(end, nodes),
    )


def outcome(end: Mapping[str, Any] | None, nodes: Sequence[NodeProgress]) -> Outcome | None:
    """The end of an attempt or a job; None if it has not ended.

    The reason names the devices of all these nodes that counted uncorrectable errors: unless the attempt succeeded, the
    node that wrote the end knows only its own.
    """
    if end is None:
        return None
    written = Outcome.from_record(end)
    named: list[str] = []
    for one in sorted(nodes, key=lambda one: one.node):
        texts = [text for text in one.device_errors if one.node != written.node or text not in written.reason]
        clause = f"node {one.node}: {', '.join(texts)}"
        if texts and clause not in written.reason:
            named.append(clause)
    more = [f"and {len(named) - _MAX_TEXTS} more nodes"] * (len(named) > _MAX_TEXTS)
    return replace(written, reason="; ".join(filter(None, [written.reason, *named[:_MAX_TEXTS], *more])))


def cache_uses(raw: object) -> tuple[CacheUse, ...]:
    listed = cast("list[Any]", raw)[:_MAX_CACHES] if isinstance(raw, list) else []
    return tuple(_cache_use(cast("Mapping[str, Any]", use)) for use in listed if isinstance(use, Mapping))


def _cache_use(raw: Mapping[str, Any]) -> CacheUse:
    reasons = raw.get("reasons")
    known: Mapping[Any, Any] = cast("Mapping[Any, Any]", reasons) if isinstance(reasons, Mapping) else {}
    counts = ("at_start", "misses", "fetched", "fetched_bytes", "stored", "stored_bytes", "renewed", "recompiled")
    return CacheUse(
        stack=one_line(str(raw.get("stack")), 16),
        place=one_line(str(raw.get("place") or ""), _LONGEST_TEXT),
        hits=None if raw.get("hits") is None else _count(raw["hits"]),
        compile_seconds=_seconds(raw.get("compile_seconds")),
        reasons={one_line(str(name), 80): _count(many) for name, many in [*known.items()][:_MAX_TEXTS]},
        missed=_texts(raw.get("missed"), _MAX_MISSED),
        removed=_texts(raw.get("removed")),
        failed=_texts(raw.get("failed")),
        warnings=_texts(raw.get("warnings")),
        **{name: _count(raw.get(name)) for name in counts},
    )


def _count(raw: object) -> int:
    is_count = isinstance(raw, (int, float)) and not isinstance(raw, bool) and 0 <= raw < 1e15
    return round(cast(float, raw)) if is_count else 0


def _texts(raw: object, most: int = _MAX_TEXTS) -> tuple[str, ...]:
    listed = cast("list[Any]", raw)[:most] if isinstance(raw, list) else []
    return tuple(one_line(str(one), _LONGEST_TEXT) for one in listed)


def _items(raw: object) -> list[tuple[object, Any]]:
    return list(cast("Mapping[object, Any]", raw).items()) if isinstance(raw, Mapping) else []


def _is_duration(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e9


def _seconds(value: Any) -> float:
    return float(value) if _is_duration(value) else 0


def _text(raw: object) -> str:
    return raw if isinstance(raw, str) else ""

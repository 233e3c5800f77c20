"""The decision of a pilot by its predefined gates, and the six steps that lead to it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from trainium_core.evidence.folder import Evidence
from trainium_core.evidence.numbers import number, words
from trainium_core.evidence.record import GPU, LAB, MET, NOT_MEASURED, NOT_MET, TRAINIUM, Record

GO, NO, NOT_YET = "go", "no", "not yet"

MEASURING = ("bench", "import")
"""Kinds of records whose metrics count as measurements of a side."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A gate, or a comparison with a reference. aside: why it does not decide; empty if it does."""

    name: str
    limit: str
    value: float | None
    state: str
    record: Record
    is_fidelity: bool
    aside: str = ""

    @property
    def title(self) -> str:
        return self.name if self.is_fidelity else words(self.name)


@dataclass(frozen=True, kw_only=True)
class Decision:
    """verdict: GO, NO or NOT_YET. reasons: sentences without a period."""

    verdict: str
    reasons: tuple[str, ...]
    judged: tuple[Judged, ...]


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step of the pilot. state: MET, NOT_MET or NOT_MEASURED."""

    title: str
    state: str
    text: str

    @property
    def word(self) -> str:
        return {MET: "done", NOT_MET: "no", NOT_MEASURED: "open"}[self.state]


def decide(evidence: Evidence) -> Decision:
    """GO if Trainium meets every gate and tolerance, at least one of both exists, and every file could be read.

    If several records have a gate, the newest one decides. Numbers of the lab and of other sides never decide.
    """
    judged = tuple(_judged(evidence.records.values()))
    deciding = [one for one in judged if not one.aside]
    failed = [one for one in deciding if one.state == NOT_MET]
    if failed:
        return Decision(verdict=NO, reasons=tuple(_sentence(one) for one in failed), judged=judged)
    missing = [
        *(_sentence(one) for one in deciding if one.state == NOT_MEASURED),
        *_missing(deciding),
        *_moved_limits(judged),
        *evidence.contradictions,
        *(f"{path} was not read: {why}" for path, why in evidence.not_read.items()),
    ]
    if missing:
        return Decision(verdict=NOT_YET, reasons=tuple(missing), judged=judged)
    return Decision(verdict=GO, reasons=tuple(_sentence(one) for one in deciding), judged=judged)


def _judged(records: Iterable[Record]) -> Iterator[Judged]:
    """The judgements on all records, oldest first. For each name, the newest Trainium record decides."""
    found = [one for record in records if record.kind in MEASURING for one in (*_gates(record), *_comparisons(record))]
    newest = {_key(one): one for one in found if one.record.side == TRAINIUM}
    for one in found:
        if one.record.side == LAB:
            aside = "measured in the lab, not on Trainium"
        elif one.record.side != TRAINIUM:
            aside = "not of the Trainium side"
        else:
            aside = "" if newest[_key(one)] is one else "a newer record decides"
        yield replace(one, aside=aside)


def _key(one: Judged) -> tuple[str, str, bool]:
    return (one.record.workload.name, one.name, one.is_fidelity)


def _gates(record: Record) -> Iterator[Judged]:
    for gate in record.gates:
        yield Judged(
            name=gate.name,
            limit=gate.limit,
            value=gate.value,
            state=gate.state,
            record=record,
            is_fidelity=False,
        )


def _comparisons(record: Record) -> Iterator[Judged]:
    for one in record.fidelity:
        limit = "no limit" if one.limit is None else f"<= {number(one.limit)}"
        name = f"{one.method} against {one.reference}"
        yield Judged(name=name, limit=limit, value=one.value, state=one.state, record=record, is_fidelity=True)


def _sentence(one: Judged) -> str:
    value = "" if one.value is None else f"{number(one.value)}, "
    limit = f"tolerance {one.limit}" if one.is_fidelity else f"gate {one.limit}"
    return f"{one.title}: {value}{limit}, {one.state} ({one.record.id})"


def _missing(deciding: Sequence[Judged]) -> Iterator[str]:
    if not any(not one.is_fidelity for one in deciding):
        yield "No record of Trainium has a gate that was set before its first run"
    if not any(one.is_fidelity for one in deciding):
        yield "No record of Trainium compares results with a reference"


def _moved_limits(judged: Sequence[Judged]) -> Iterator[str]:
    """Gates of Trainium whose limit differs between records."""
    limits = dict[tuple[str, str, bool], list[Judged]]()
    for one in judged:
        if one.record.side == TRAINIUM:
            limits.setdefault(_key(one), []).append(one)
    for rows in limits.values():
        first, last = rows[0], rows[-1]
        if first.limit != last.limit:
            yield (
                f"The limit of {first.name} was {first.limit} in {first.record.id}, and is {last.limit} in "
                f"{last.record.id}"
            )


def steps(evidence: Evidence, decision: Decision) -> Sequence[Step]:
    """The six steps, each with its evidence."""
    measured = [one for one in evidence.records.values() if one.kind in MEASURING and has_values(one)]
    on_trainium = [one for one in measured if one.side == TRAINIUM]
    on_gpu = [one for one in measured if one.side == GPU]
    names = list(dict.fromkeys(one.workload.name for one in measured))
    compared = [one for one in decision.judged if one.is_fidelity and not one.aside]
    return (
        _step("Choose a workload", names, "no record names a workload"),
        _step("Measure the GPU", [_ran(one) for one in on_gpu], "no record of a GPU"),
        _ported(evidence, on_trainium),
        Step(
            title="Check the results",
            state=_worst(compared),
            text=_tally(compared) or "no comparison with a reference on Trainium",
        ),
        _step("Measure Trainium", [_ran(one) for one in on_trainium], "no record of Trainium"),
        Step(
            title="Decide, or roll back",
            state={GO: MET, NO: NOT_MET, NOT_YET: NOT_MEASURED}[decision.verdict],
            text=f"by the gates: {decision.verdict}",
        ),
    )


def has_values(record: Record) -> bool:
    return any(metric.value is not None for metric in record.metrics.values())


def _step(title: str, done: Sequence[str], missing: str) -> Step:
    texts = dict.fromkeys(done)
    return Step(title=title, state=MET if done else NOT_MEASURED, text="; ".join(texts) or missing)


def _ran(record: Record) -> str:
    nodes = f"{record.hardware.nodes} x " if record.hardware.nodes else ""
    return f"{record.workload.name} on {nodes}{record.hardware.type} ({record.id})"


def _ported(evidence: Evidence, on_trainium: Sequence[Record]) -> Step:
    verdicts = [
        f"{stack.key}: {stack.verdict.partition(':')[0]}" for code in evidence.assessed for stack in code.stacks
    ]
    ran = ["it has run on Trainium"] if on_trainium else ["it has not run on Trainium"]
    text = "; ".join(dict.fromkeys((*ran, *(verdicts or ["the code was not assessed"]))))
    return Step(title="Port the code", state=MET if on_trainium else NOT_MEASURED, text=text)


def _tally(compared: Sequence[Judged]) -> str:
    counts = {state: sum(one.state == state for one in compared) for state in (MET, NOT_MET, NOT_MEASURED)}
    return ", ".join(f"{count} {state}" for state, count in counts.items() if count)


def _worst(compared: Sequence[Judged]) -> str:
    states = {one.state for one in compared}
    return NOT_MET if NOT_MET in states else NOT_MEASURED if NOT_MEASURED in states or not states else MET

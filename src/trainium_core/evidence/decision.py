"""The decision of a pilot by its predefined gates, and the six steps that lead to it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from trainium_core.catalog.neuron_software import frameworks
from trainium_core.evidence.fidelity import can_recompute
from trainium_core.evidence.figures import UNIT_COST, interval_text
from trainium_core.evidence.folder import CONTRACT_FILE, Answer, Evidence
from trainium_core.evidence.gates import MET, NOT_MEASURED, NOT_MET, WITHIN_NOISE, Fidelity
from trainium_core.evidence.numbers import number, words
from trainium_core.evidence.record import BENCH, GPU, LAB, TRAINIUM, Record
from trainium_core.evidence.software import software_stack
from trainium_core.plurals import count

GO, NO, NOT_YET = "go", "no", "not yet"

_UNKNOWN_STACK = "unknown stack"
_STATED = "trn bench does not make this comparison: its value is taken as stated, and not computed again"


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """The state of a gate, or of a comparison with a reference.

    Attributes:
        state: A state of the record.
        detail: The interval of the value, or how many values were compared.
        note: What a reader must know about the value; may be empty.
        aside: Why the judgement does not affect the decision; empty if it does.
    """

    name: str
    limit: str
    value: float | None
    state: str
    record: Record
    is_fidelity: bool
    detail: str
    note: str = ""
    aside: str = ""

    @property
    def title(self) -> str:
        return self.name if self.is_fidelity else words(self.name)


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The decision of a pilot.

    Attributes:
        verdict: GO, NO or NOT_YET.
        reasons: Sentences without a period.
        judgements: The judgements on all records, the oldest record first.
    """

    verdict: str
    reasons: tuple[str, ...]
    judgements: tuple[Judgement, ...]


@dataclass(frozen=True, kw_only=True)
class DecisionStep:
    """A step of the pilot.

    Attributes:
        state: MET, NOT_MET or NOT_MEASURED.
        text: The evidence, or what is missing.
    """

    title: str
    state: str
    text: str

    @property
    def word(self) -> str:
        return {MET: "done", NOT_MET: "no", NOT_MEASURED: "open"}[self.state]


def decide(evidence: Evidence) -> Decision:
    """The decision: NO if Trainium misses a gate or a tolerance, else NOT_YET if something is missing, else GO.

    GO requires at least one gate and one tolerance for each workload that was measured on Trainium. All must be
    measured, with unchanged limits. Each gate needs an interval that does not contain its limit, except for an event
    that is measured once. No job may have failed without being repeated. All records, assessments and answers must be
    readable, no record may be dated in the future, and no files may contradict each other. The software stack must be
    known and supported by AWS, or an answer accepts it by name. If several Trainium records of a workload have the same
    gate or tolerance, the newest record decides. Numbers of the lab and of other sides never decide.
    """
    judgements = tuple(_judgements(evidence.records.values()))
    deciding = [judgement for judgement in judgements if not judgement.aside]
    failed = [judgement for judgement in deciding if judgement.state == NOT_MET]
    missing = [
        *(f"The job {job.text}" for job in evidence.failed),
        *(_sentence(judgement) for judgement in deciding if judgement.state in (NOT_MEASURED, WITHIN_NOISE)),
        *_missing(evidence, deciding),
        *_moved_limits(judgements),
        *_unsupported([judgement.record for judgement in deciding], evidence.answers),
        *evidence.contradictions,
        *(f"{path} does not count: {why}" for path, why in evidence.not_read.items()),
    ]
    verdict = NO if failed else NOT_YET if missing else GO
    reasons = missing if verdict == NOT_YET else map(_sentence, failed or deciding)
    has_cost = any(UNIT_COST in judgement.name for judgement in deciding if not judgement.is_fidelity)
    no_cost = ("No gate limits the cost",) if verdict == GO and not has_cost else ()
    return Decision(verdict=verdict, reasons=(*reasons, *no_cost), judgements=judgements)


def _judgements(records: Iterable[Record]) -> Iterator[Judgement]:
    """The judgements on all records, oldest first. Of each workload and name, the newest Trainium record decides."""
    judgements = [
        judgement for record in records if record.kind == BENCH for judgement in (*_gates(record), *_fidelity(record))
    ]
    newest = {_key(judgement): judgement for judgement in judgements if judgement.record.side == TRAINIUM}
    for judgement in judgements:
        if judgement.record.side == LAB:
            aside = "measured on a stand-in, not on Trainium"
        elif judgement.record.side != TRAINIUM:
            aside = "measured on another side"
        else:
            aside = "" if newest[_key(judgement)] is judgement else "newer results decide"
        yield replace(judgement, aside=aside)


def _key(judgement: Judgement) -> tuple[str, str, bool]:
    return (judgement.record.workload.name, judgement.name, judgement.is_fidelity)


def _gates(record: Record) -> Iterator[Judgement]:
    for gate in record.gates:
        metric = record.metrics.get(gate.name)
        yield Judgement(
            name=gate.name,
            limit=gate.limit,
            value=gate.value,
            state=gate.state,
            record=record,
            is_fidelity=False,
            detail="" if metric is None else interval_text(metric),
        )


def _fidelity(record: Record) -> Iterator[Judgement]:
    for check in record.fidelity:
        yield Judgement(
            name=f"{check.method} against {check.reference}",
            limit=f"<= {number(check.limit)}",
            value=check.value,
            state=check.state,
            record=record,
            is_fidelity=True,
            detail=check.why_null or _compared(check),
            note="" if can_recompute(check.method) else _STATED,
        )


def _compared(check: Fidelity) -> str:
    """How many values were compared; of losses, at how many of the counted steps of the reference."""
    if check.counted is None:
        return f"{count(check.compared, 'value')} compared"
    return f"compared at {check.compared:,} of {count(check.counted, 'counted step')} of the reference"


def _sentence(judgement: Judgement) -> str:
    shown = None if judgement.value is None else number(judgement.value)
    value = "".join(f"{part}, " for part in (shown, judgement.detail) if part)
    limit = f"tolerance {judgement.limit}" if judgement.is_fidelity else f"gate {judgement.limit}"
    return f"{judgement.title}: {value}{limit}, {judgement.state} ({judgement.record.id})"


def _missing(evidence: Evidence, deciding: Sequence[Judgement]) -> Iterator[str]:
    """What no record of a workload on Trainium has, with the next step."""
    records = evidence.records.values()
    workloads = {record.workload.name for record in records if record.kind == BENCH and record.side == TRAINIUM}
    if not workloads:
        yield "Nothing was measured on Trainium: next, run trn bench on it, with gates and a reference"
    for workload in sorted(workloads):
        found = {judgement.is_fidelity for judgement in deciding if judgement.record.workload.name == workload}
        what = f"No results of {workload} on Trainium" if len(workloads) > 1 else "No results of Trainium"
        if False not in found:
            yield f"{what} have a gate that was set before the first run"
        if True not in found:
            yield f"{what} are compared with a reference"


def _moved_limits(judgements: Iterable[Judgement]) -> Iterator[str]:
    """Each change of the limit of a gate or tolerance from one Trainium record to the next."""
    by_gate = dict[tuple[str, str, bool], list[Judgement]]()
    for judgement in judgements:
        if judgement.record.side == TRAINIUM:
            by_gate.setdefault(_key(judgement), []).append(judgement)
    for older, newer in (pair for rows in by_gate.values() for pair in pairwise(rows)):
        if older.limit != newer.limit:
            yield (
                f"The limit of {older.name} was {older.limit} in {older.record.id}, and is {newer.limit} in "
                f"{newer.record.id}"
            )


def _unsupported(records: Iterable[Record], answers: Mapping[str, Answer]) -> Iterator[str]:
    """Each stack of the records that is unknown or not supported, and that the answer about support does not name."""
    answer = answers["support"].answer if "support" in answers else ""
    used = {software_stack(record.software): record.id for record in records}
    for stack, record_id in used.items():
        framework = frameworks().get(stack or "")
        name = stack or _UNKNOWN_STACK
        if framework is None:
            problem = f"Whether AWS supports the software of {record_id} is unknown: its software stack is "
            problem += "not one of this package" if stack else "not known"
        else:
            problem = f"{framework.support} ({record_id})" if framework.support else ""
        if problem and not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", answer):
            yield f"{problem}; to accept it, name {name} in the answer support of {CONTRACT_FILE}"


def steps(evidence: Evidence, decision: Decision) -> Sequence[DecisionStep]:
    """The six steps, each with its evidence."""
    measured = [record for record in evidence.records.values() if record.kind == BENCH and _has_values(record)]
    on_trainium = [record for record in measured if record.side == TRAINIUM]
    on_gpu = [record for record in measured if record.side == GPU]
    fidelity = [judgement.state for judgement in decision.judgements if judgement.is_fidelity and not judgement.aside]
    return (
        _step("Choose a workload", [record.workload.name for record in measured], "no results file has a measurement"),
        _step("Measure the GPU", map(_run_text, on_gpu), "no results of a GPU"),
        _ported(evidence, on_trainium),
        DecisionStep(
            title="Check the results",
            state=next((state for state in (NOT_MET, NOT_MEASURED, MET) if state in fidelity), NOT_MEASURED),
            text=_counts(fidelity) or "no comparison with a reference on Trainium",
        ),
        _step("Measure Trainium", map(_run_text, on_trainium), "no results of Trainium"),
        DecisionStep(
            title="Decide, or roll back",
            state={GO: MET, NO: NOT_MET, NOT_YET: NOT_MEASURED}[decision.verdict],
            text=f"by the gates: {decision.verdict}",
        ),
    )


def _has_values(record: Record) -> bool:
    return any(metric.value is not None for metric in record.metrics.values())


def _step(title: str, done: Iterable[str], missing: str) -> DecisionStep:
    text = "; ".join(dict.fromkeys(done))
    return DecisionStep(title=title, state=MET if text else NOT_MEASURED, text=text or missing)


def _run_text(record: Record) -> str:
    return f"{record.workload.name} on {record.hardware.machines} ({record.id})"


def _ported(evidence: Evidence, on_trainium: Sequence[Record]) -> DecisionStep:
    verdicts = [
        f"{stack.key}: {stack.verdict.partition(':')[0]}" for code in evidence.assessed for stack in code.stacks
    ]
    run = "it has run on Trainium" if on_trainium else "it has not run on Trainium"
    text = "; ".join(dict.fromkeys((run, *(verdicts or ["the code was not assessed"]))))
    return DecisionStep(title="Port the code", state=MET if on_trainium else NOT_MEASURED, text=text)


def _counts(states: Sequence[str]) -> str:
    counts = {state: states.count(state) for state in (MET, NOT_MET, NOT_MEASURED)}
    return ", ".join(f"{count} {state}" for state, count in counts.items() if count)

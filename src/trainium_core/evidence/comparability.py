"""Whether the records of two sides can be compared, and the ratios of records that were not measured together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from trainium_core.evidence.figures import UNIT_COST
from trainium_core.evidence.metric import DERIVED, MEASURED, Metric, unknown
from trainium_core.evidence.record import BENCH, LAB, TRAINIUM, Comparability, Record

_STATED = ("model", "dataset_sha256", "seq", "global_batch", "steps", "warmup")
"""Fields of a workload that both sides must state and that must be equal."""
_EQUAL = ("name", "config_sha256", "tokenizer_sha256", "optimizer")
"""Fields that must be equal, or absent on both sides. Command and parallelism are not compared."""

_PRECISIONS = {
    "bf16": "16 bits",
    "bfloat16": "16 bits",
    "fp16": "16 bits",
    "float16": "16 bits",
    "fp32": "32 bits",
    "float32": "32 bits",
}


def comparable(a: Record, b: Record, *, of_cost: bool = True) -> Comparability:
    """Compare the conditions of two records.

    Args:
        a: A record.
        b: The record that it is compared with.
        of_cost: Whether the purchase option is a condition.
    """
    equal, different = list[str](), list[str]()
    for name, problem in _conditions(a, b, of_cost=of_cost):
        if problem:
            different.append(f"{name} ({problem})")
        else:
            equal.append(name)
    return Comparability(
        against=b.id,
        equal=tuple(equal),
        different=tuple(different),
        comparable=not different,
        best_of_each=tuple(_own_choices(a, b)),
    )


def with_missing_ratios(records: Sequence[Record]) -> tuple[Record, ...]:
    """The records, with the ratios of each Trainium record to those that it was not measured with, such as imports."""
    benches = [record for record in records if record.kind == BENCH and record.side != LAB]

    def completed(record: Record) -> Record:
        known = {record.id, *(compared.against for compared in record.comparable)}
        others = [other for other in benches if other.id not in known and other.workload.name == record.workload.name]
        added = (replace(comparable(record, other, of_cost=False), ratios=_ratios(record, other)) for other in others)
        return replace(record, comparable=(*record.comparable, *added))

    return tuple(completed(record) if record in benches and record.side == TRAINIUM else record for record in records)


def _ratios(a: Record, b: Record) -> Mapping[str, Metric]:
    """The ratio of each rate and cost that both records have, from the two values alone."""
    names = [name for name in a.metrics if name in b.metrics]
    return {name: _ratio(name, a, b) for name in sorted(names) if name.endswith("_per_second") or UNIT_COST in name}


def _ratio(name: str, a: Record, b: Record) -> Metric:
    ours, theirs = a.metrics[name], b.metrics[name]
    verdict = comparable(a, b, of_cost=name.endswith("_paid"))
    if verdict.different:
        return unknown("ratio", verdict.verdict)
    if ours.value is None or not theirs.value:
        return unknown("ratio", ours.why_null or theirs.why_null or f"{name} of {b.id} is 0")
    ends = None
    if ours.low is not None and ours.high is not None and theirs.low is not None and theirs.high is not None:
        ends = (max(ours.low, 0.0) / theirs.high, ours.high / theirs.low) if theirs.low > 0 else None
    how = "; its interval: from the ends of both intervals" if ends else ""
    return Metric(
        value=ours.value / theirs.value,
        unit="ratio",
        low=ends[0] if ends else None,
        high=ends[1] if ends else None,
        origin=DERIVED,
        method=f"{name} of {a.id} / {name} of {b.id}, not measured together{how}",
        source="; ".join(f"{record.id}: {origin}" for record in (a, b) if (origin := imported_from(record, name))),
        why_null=None if ends else "a side has no interval above 0",
    )


def imported_from(record: Record, name: str) -> str:
    """Origin, source and date of a number in an imported record; empty for a number that `trn bench` measured."""
    metric = record.metrics[name]
    if metric.origin == MEASURED or any(run.job for run in record.runs):
        return ""
    return ", ".join(filter(None, (metric.origin, metric.source, metric.date or f"results of {record.made[:10]}")))


def _own_choices(a: Record, b: Record) -> Iterator[str]:
    """What each side states and chooses for itself, if it differs."""
    precisions = [_precision_class(record.workload.precision) for record in (a, b)]
    if None not in precisions and precisions[0] != precisions[1]:
        yield f"precision ({a.workload.precision} against {b.workload.precision})"
    tuned = [record.workload.tuned for record in (a, b)]
    if None not in tuned and tuned[0] != tuned[1]:
        yield f"tuned ({' against '.join('yes' if is_tuned else 'no' for is_tuned in tuned)})"


def _conditions(a: Record, b: Record, *, of_cost: bool) -> Iterator[tuple[str, str]]:
    """Each condition with its problem; the problem is empty if the condition is met."""
    if LAB in (a.side, b.side):
        yield "side", "a stand-in has no accelerators"
    for name in _STATED:
        yield name, _difference(getattr(a.workload, name), getattr(b.workload, name))
    for name in _EQUAL:
        of_a, of_b = getattr(a.workload, name), getattr(b.workload, name)
        if (of_a, of_b) != (None, None):
            yield name, _difference(of_a, of_b)
    for name in ("precision", "tuned"):
        unstated = [record.id for record in (a, b) if getattr(record.workload, name) is None]
        yield name, f"not stated by {', '.join(unstated)}" if unstated else ""
    unstated = [record.id for record in (a, b) if record.hardware.used is None or record.hardware.accelerators is None]
    yield "accelerators used", f"not stated by {', '.join(unstated)}" if unstated else ""
    if of_cost:
        yield "price basis", _difference(a.hardware.purchase, b.hardware.purchase)


def _difference(a: object, b: object) -> str:
    if a is None or b is None:
        return "not stated"
    return "" if a == b else f"{a} against {b}"


def _precision_class(name: str | None) -> str | None:
    return None if name is None else _PRECISIONS.get(name.lower(), name.lower())

"""Contradictions between the records of a pilot: what a record states about another is computed again from both."""

from collections.abc import Iterable, Iterator, Mapping
from math import isclose

from trainium_core.evidence.comparability import comparable
from trainium_core.evidence.fidelity import recomputed_fidelity
from trainium_core.evidence.gates import NOT_MEASURED, Fidelity
from trainium_core.evidence.metric import Metric
from trainium_core.evidence.recomputed import is_same, recomputed_ratio, wrong_metrics
from trainium_core.evidence.recomputed_tco import recomputed_break_even, recomputed_range, throughputs
from trainium_core.evidence.record import BENCH, TCO, Comparability, Record
from trainium_core.evidence.tco import BREAK_EVEN, LINE, SAVING, TCO_PREFIX, TOTAL

_ROUNDING = 1e-6
_MOST_RUNS = 1000
_NEAR = 0.02
"""How much a ratio of geometric means may differ from that of two means whose runs are equal."""


def contradictions(records: Iterable[Record]) -> Iterator[str]:
    """Statements of records that the other records do not support, one sentence each without a period."""
    by_id = {record.id: record for record in records}
    for record in by_id.values():
        if record.kind == BENCH:
            yield from wrong_metrics(record)
        for check in record.fidelity:
            if check.reference not in by_id:
                yield f"{record.id} compares its results with {check.reference}, whose results file is missing"
            else:
                yield from _wrong_fidelity(check, record, by_id[check.reference])
        for compared in record.comparable:
            if compared.against in by_id:
                yield from _wrong_ratios(compared, record, by_id[compared.against])
        if record.kind == TCO:
            yield from _wrong_total(record)
            yield from _wrong_throughput(record, by_id)
            yield from _wrong_saving(record, by_id)


def _wrong_fidelity(check: Fidelity, record: Record, reference: Record) -> Iterator[str]:
    again = recomputed_fidelity(check, record, reference)
    if again is None or check.state == NOT_MEASURED:
        return
    counts, counts_again = (
        f"{side.compared} of {side.expected} values at {side.counted} counted steps" for side in (check, again)
    )
    if check.state != again.state:
        why = f": {again.why_null}" if again.why_null else ""
        yield f"{record.id}: {check.method} is {check.state!r}, but both results files give {again.state!r}{why}"
    elif not _is_close(check.value, again.value):
        yield f"{record.id}: {check.method} is {check.value}, but both results files give {again.value}"
    elif counts != counts_again:
        yield f"{record.id}: {check.method} compares {counts}, but both results files give {counts_again}"


def _wrong_ratios(compared: Comparability, record: Record, other: Record) -> Iterator[str]:
    verdict = comparable(record, other, of_cost=False)
    of_paid = comparable(record, other)
    if compared.comparable and verdict.different:
        yield f"{record.id} is stated to be comparable with {other.id}, but it is {verdict.verdict}"
    for name, ratio in compared.ratios.items():
        if ratio.value is None:
            continue
        place = f"{record.id}: the ratio {name} to {other.id}"
        ours, theirs = (side.metrics.get(name) for side in (record, other))
        if ours is None or theirs is None or not ours.value or not theirs.value:
            values = " and ".join(str(metric.value if metric else None) for metric in (ours, theirs))
            yield f"{place} is {ratio.value}, but the values are {values}"
        elif name.endswith("_paid") and of_paid.different and not verdict.different:
            yield f"{place} is {ratio.value}, but the paid costs are {of_paid.verdict}"
        elif (again := recomputed_ratio(record, other, name)) is not None:
            if not is_same(ratio, again):
                stated, computed = (f"{side.value} ({side.low} to {side.high})" for side in (ratio, again))
                yield f"{place} is {stated}, but the runs give {computed}"
        elif not isclose(ratio.value, ours.value / theirs.value, rel_tol=_NEAR + _spread(ours) + _spread(theirs)):
            yield f"{place} is {ratio.value}, but the values are {ours.value} and {theirs.value}"


def _spread(metric: Metric) -> float:
    """A bound of how much the geometric mean of the runs is below their mean: about half of the relative variance."""
    if metric.low is None or metric.high is None or not metric.value or not metric.level:
        return 0.0
    half = (metric.high - metric.low) / 2 / metric.value
    return half * half * min(max(metric.n or 0, 0), _MOST_RUNS) / 4


def _wrong_total(record: Record) -> Iterator[str]:
    total = record.metrics.get(TOTAL)
    if total is None or total.value is None:
        return
    lines = [metric.value for name, metric in record.metrics.items() if name.startswith(LINE)]
    known = [value for value in lines if value is not None]
    if len(known) < len(lines):
        yield f"{record.id}: the total is {total.value} USD, but a line is unknown"
    elif not _is_close(total.value, sum(known)):
        yield f"{record.id}: the total is {total.value} USD, but its lines add up to {sum(known)} USD"


def _wrong_saving(record: Record, by_id: Mapping[str, Record]) -> Iterator[str]:
    """Contradictions of the saving: it is the difference of the totals of two comparable records."""
    saving, even = record.metrics.get(SAVING), record.metrics.get(BREAK_EVEN)
    if saving is None or saving.value is None:
        if even is not None and even.value is not None:
            yield f"{record.id} has a break-even without a saving"
        return
    against = [compared.against for compared in record.comparable]
    other = by_id.get(against[0]) if len(against) == 1 else None
    if other is None:
        named = " and ".join(against) or "another"
        yield f"{record.id} compares its costs with those of {named}, whose results file is missing"
        return
    verdict = comparable(record, other, of_cost=False)
    if verdict.different:
        yield f"{record.id} has a saving against {other.id}, but it is {verdict.verdict}"
    ours, theirs = (side.metrics[TOTAL].value if TOTAL in side.metrics else None for side in (record, other))
    if ours is None or theirs is None or not _is_close(saving.value, theirs - ours):
        yield f"{record.id}: the saving is {saving.value} USD, but the totals are {ours} and {theirs} USD"
        return
    near = _ROUNDING * (abs(ours) + abs(theirs))
    for end, again in recomputed_range(record, other).items():
        stated = getattr(saving, end)
        if not _is_close(stated, again, near):
            yield f"{record.id}: the {end} end of the saving is {stated} USD, but the lines give {again} USD"
    hours, hours_again = even.value if even else None, recomputed_break_even(record, other)
    if not _is_close(hours, hours_again):
        yield f"{record.id}: the break-even is {hours} h, but the lines give {hours_again} h"


def _wrong_throughput(record: Record, by_id: Mapping[str, Record]) -> Iterator[str]:
    """Contradictions of the throughput of twelve months: it is that of the record of `trn bench`."""
    bench = record.id.removeprefix(TCO_PREFIX)
    for name, stated in throughputs(record):
        if bench not in by_id:
            yield f"{record.id} is based on {bench}, whose results file is missing"
            continue
        measured = by_id[bench].metrics.get(name)
        if measured is None or _ends(stated) != _ends(measured):
            yield f"{record.id}: {name} is not that of {bench}: run trn tco again"


def _ends(metric: Metric) -> tuple[float | None, float | None, float | None, str]:
    return metric.value, metric.low, metric.high, metric.unit


def _is_close(stated: float | None, computed: float | None, near: float = _ROUNDING) -> bool:
    if stated is None or computed is None:
        return stated is computed
    return isclose(stated, computed, rel_tol=_ROUNDING, abs_tol=near)

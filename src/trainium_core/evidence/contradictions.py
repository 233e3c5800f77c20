"""Contradictions between the records of a pilot: what a record states about another is computed again from both."""

from collections.abc import Iterable, Iterator
from math import isclose

from trainium_core.evidence.comparability import comparable
from trainium_core.evidence.fidelity import recomputed_fidelity
from trainium_core.evidence.gates import MET, Fidelity
from trainium_core.evidence.record import Comparability, Record

_ROUNDING = 1e-6


def contradictions(records: Iterable[Record]) -> Iterator[str]:
    """Statements of records that the other records do not support, one sentence each without a period."""
    by_id = {record.id: record for record in records}
    for record in by_id.values():
        for check in record.fidelity:
            if check.reference not in by_id:
                yield f"{record.id} compares its results with {check.reference}, whose results file is missing"
            else:
                yield from _wrong_fidelity(check, record, by_id[check.reference])
        for compared in record.comparable:
            if compared.against in by_id:
                yield from _wrong_ratios(compared, record, by_id[compared.against])


def _wrong_fidelity(check: Fidelity, record: Record, reference: Record) -> Iterator[str]:
    again = recomputed_fidelity(check, record, reference)
    if again is None:
        return
    if check.state == MET and again.state != MET:
        yield f"{record.id}: {check.method} is {check.state!r}, but both results files give {again.state!r}"
    elif (
        check.value is not None and again.value is not None and not isclose(check.value, again.value, rel_tol=_ROUNDING)
    ):
        yield f"{record.id}: {check.method} is {check.value}, but both results files give {again.value}"


def _wrong_ratios(compared: Comparability, record: Record, other: Record) -> Iterator[str]:
    verdict = comparable(record, other, of_cost=False)
    if compared.comparable and verdict.different:
        yield f"{record.id} is stated to be comparable with {other.id}, but it is {verdict.verdict}"
    for name, ratio in compared.ratios.items():
        values = [side.metrics[name].value for side in (record, other) if name in side.metrics]
        if ratio.value is None or len(values) < 2:
            continue
        ours, theirs = values
        if not ours or not theirs or not _contains(ratio.low, ratio.high, ours / theirs):
            place = f"{record.id}: the ratio {name} to {other.id}"
            yield f"{place} is {ratio.value}, but the values are {ours} and {theirs}"


def _contains(low: float | None, high: float | None, value: float) -> bool:
    """Whether an interval contains a value: a ratio of geometric means differs a little from that of the two values."""
    return low is not None and high is not None and low * (1 - _ROUNDING) <= value <= high * (1 + _ROUNDING)

"""The range of the saving and the break-even of `trn tco`, computed again from the lines of both sides."""

from collections.abc import Iterator, Mapping

from trainium_core.evidence.metric import Metric
from trainium_core.evidence.record import Record
from trainium_core.evidence.tco import LINE, THROUGHPUT, break_even
from trainium_core.evidence.tco_side import ALL_HOURS, AT_WORK, COMPILING, ENGINEERING, IDLE, WORK


def throughputs(record: Record) -> Iterator[tuple[str, Metric]]:
    """The throughput of a side with the name of its metric; nothing if it is unknown."""
    for name, metric in record.metrics.items():
        if name.startswith(THROUGHPUT):
            yield name.removeprefix(THROUGHPUT), metric


def recomputed_break_even(record: Record, other: Record) -> float | None:
    """The break-even in hours; None if there is none, or if the record lacks the work or the throughput."""
    work, rate = record.metrics.get(WORK), _rate(record, "value")
    if work is None or work.value is None or rate is None:
        return None
    (ours, our_port), (theirs, their_port) = (_yearly_and_once(side) for side in (record, other))
    return break_even(our_port - their_port, theirs - ours, work.value / rate, record.side).value


def recomputed_range(record: Record, other: Record) -> Mapping[str, float | None]:
    """The saving at the ends of the intervals of both throughputs: low and high, or None without such intervals.

    It is empty if hours at work cost nothing: then the lines do not show which part of other hours are at work.
    """
    if not all(_cost(side, AT_WORK) > 0 for side in (record, other)):
        return {}
    ours_at_low, ours_at_high, theirs_at_low, theirs_at_high = (
        _total(side, end) for side in (record, other) for end in ("low", "high")
    )
    if ours_at_low is None or ours_at_high is None or theirs_at_low is None or theirs_at_high is None:
        return {"low": None, "high": None}
    return {"low": theirs_at_high - ours_at_low, "high": theirs_at_low - ours_at_high}


def _total(record: Record, end: str) -> float | None:
    """The total with the throughput at an end of its interval; None if there is no interval above 0.

    Hours at work are inversely proportional to the throughput; hours of compilations do not depend on it.
    """
    rate, at_end = _rate(record, "value"), _rate(record, end)
    if rate is None or at_end is None:
        return None
    at_work, compiling = _cost(record, AT_WORK), _cost(record, COMPILING)
    of_all_hours = _cost(record, IDLE) + _cost(record, ALL_HOURS)
    varying = at_work + of_all_hours * at_work / (at_work + compiling)
    return sum(_yearly_and_once(record)) + varying * (rate / at_end - 1)


def _rate(record: Record, end: str) -> float | None:
    rates: list[float | None] = [getattr(metric, end) for _, metric in throughputs(record)]
    return rates[0] if rates and rates[0] is not None and rates[0] > 0 else None


def _cost(record: Record, formula: str) -> float:
    """The sum of the lines that are computed by a formula that begins so."""
    return sum(
        metric.value or 0.0
        for name, metric in record.metrics.items()
        if name.startswith(LINE) and (metric.method or "").startswith(formula)
    )


def _yearly_and_once(record: Record) -> tuple[float, float]:
    """The sum of the lines that are paid every year, and of engineering."""
    lines = {name: metric.value or 0.0 for name, metric in record.metrics.items() if name.startswith(LINE)}
    once = lines.pop(f"{LINE}{ENGINEERING}", 0.0)
    return sum(lines.values()), once

"""Metrics and ratios of `trn bench`, computed again from the runs in records."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import TypeGuard

from trainium_core.evidence.bench import (
    STEPS_PER_SECOND,
    TOKENS_PER_SECOND,
    USD_LIST,
    USD_PAID,
    usd_per_million,
)
from trainium_core.evidence.metric import Metric
from trainium_core.evidence.record import Record, RecordedRun
from trainium_core.evidence.statistics import PERCENTILES, runs_mean, runs_percentile, runs_ratio

_STATED_WITHIN = 1e-3
"""Records round the tokens of a run to a whole number."""
_LEAST, _MOST = 1e-100, 1e100
"""Numbers outside of these bounds are not computed with: they are no measurements, and would overflow."""


def wrong_metrics(record: Record) -> Iterator[str]:
    """Runs that have too few steps, and metrics that the runs do not give.

    Metrics of other tools cannot be computed again.
    """
    wanted = record.workload.steps or 0
    for run in _counted(record):
        if run.steps is not None and run.steps < wanted:
            yield f"{record.id}: the run {run.job} counts with {run.steps} steps, but the workload has {wanted}"
    for name, again in _metrics(record).items():
        stated = record.metrics.get(name)
        if stated is not None and stated.value is not None and not is_same(stated, again):
            yield f"{record.id}: {name} is {_shown(stated)}, but its runs give {_shown(again)}"


def recomputed_ratio(record: Record, other: Record, name: str) -> Metric | None:
    """The ratio of a rate or cost of two records, from their runs; None if it cannot be computed again."""
    values, others = (_run_values(side, name) for side in (record, other))
    return runs_ratio(values, others, name) if values and others else None


def is_same(stated: Metric, again: Metric) -> bool:
    """Whether values and intervals are equal, except for rounding."""
    if again.value is None:
        return stated.value is None
    near = abs(again.value) * _STATED_WITHIN
    pairs = ((stated.value, again.value), (stated.low, again.low), (stated.high, again.high))
    return all(a == b or (a is not None and b is not None and abs(a - b) <= near) for a, b in pairs)


def _shown(metric: Metric) -> str:
    return f"{metric.value} ({metric.low} to {metric.high})"


def _metrics(record: Record) -> Mapping[str, Metric]:
    metrics = dict[str, Metric]()
    for name in (TOKENS_PER_SECOND, STEPS_PER_SECOND):
        if rates := _rates(record, name):
            metrics[name] = runs_mean(rates, "")
    usd_hour = record.hardware.usd_hour
    if _is_usual(usd_hour) and (rates := _rates(record, TOKENS_PER_SECOND)):
        metrics[USD_PAID] = runs_mean([usd_per_million(usd_hour, rate) for rate in rates], "")
    samples = [run.step_seconds for run in _counted(record)]
    if samples and all(run and all(map(_is_usual, run)) for run in samples):
        for quantile in PERCENTILES:
            metrics[f"step_seconds_p{100 * quantile:g}"] = runs_percentile(samples, quantile, "s")
    return metrics


def _run_values(record: Record, name: str) -> Sequence[float]:
    """A rate or cost of each run; empty if it is unknown. A run's cost is proportional to its seconds per token."""
    if name not in (USD_PAID, USD_LIST):
        return _rates(record, name)
    metric = record.metrics.get(name)
    inverse = [1 / rate for rate in _rates(record, TOKENS_PER_SECOND)]
    if metric is None or not _is_usual(metric.value) or not inverse:
        return ()
    return [metric.value * seconds / fmean(inverse) for seconds in inverse]


def _rates(record: Record, name: str) -> Sequence[float]:
    """The rate of each run that counts; empty if a run does not have its work or seconds."""
    pairs = [(_work(run, name), run.phases.get("step")) for run in _counted(record)]
    rates = [work / seconds for work, seconds in pairs if _is_usual(work) and _is_usual(seconds)]
    return rates if len(rates) == len(pairs) else ()


def _is_usual(value: float | None) -> TypeGuard[float]:
    return value is not None and _LEAST <= value <= _MOST


def _work(run: RecordedRun, name: str) -> int | None:
    return {TOKENS_PER_SECOND: run.tokens, STEPS_PER_SECOND: run.steps}.get(name)


def _counted(record: Record) -> Sequence[RecordedRun]:
    return [run for run in record.runs if run.excluded is None]

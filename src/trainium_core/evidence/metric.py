"""A number of a record, with its unit, interval and origin, and what it must not contradict."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from trainium_core.evidence.typed_json import shown

MEASURED, IMPORTED, QUOTED, DERIVED = "measured", "imported", "quoted", "derived"
ORIGINS = (MEASURED, IMPORTED, QUOTED, DERIVED)
FEWEST_RUNS = 3

_RECOVERY = "recovery_"
"""Prefix of the metrics that are measured once, not in each run."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A number with its unit, interval and origin.

    Attributes:
        n: The number of samples.
        low, high: The confidence interval at `level`; without a level, the range of the runs. `method` says how.
        method: How value and interval were computed. For a derived number, the formula.
        source, date: Of a quoted or imported number, and of the inputs of a derived number.
        why_null: Why the value is None; for a value without an interval, why the interval is missing.
    """

    value: float | None
    unit: str
    n: int | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    method: str | None = None
    origin: str | None = None
    source: str | None = None
    date: str | None = None
    why_null: str | None = None


def is_event(name: str) -> bool:
    """Whether a metric is about an event that is measured once, not in each run."""
    return name.startswith(_RECOVERY)


def unknown(unit: str, why: str, *, n: int | None = None) -> Metric:
    """A metric without a value."""
    return Metric(value=None, unit=unit, n=n, why_null=why)


def metric_problems(metric: Metric) -> Iterator[str]:
    """Contradictions in a metric, each a phrase without a period."""
    numbers = (metric.value, metric.low, metric.high, metric.level)
    if any(number is not None and not math.isfinite(number) for number in numbers):
        yield "a number is not finite"
        return
    if metric.value is None:
        if not metric.why_null:
            yield "the value is null without a reason in why_null"
        if metric.low is not None or metric.high is not None:
            yield "an interval without a value"
        return
    if metric.origin not in ORIGINS:
        yield f"origin is {shown(metric.origin)}, not one of {', '.join(ORIGINS)}"
    if metric.origin == QUOTED and not (metric.source and metric.date):
        yield "a quoted number needs source and date"
    if metric.origin == IMPORTED and not metric.source:
        yield "an imported number needs its source"
    if metric.origin == DERIVED and not metric.method:
        yield "a derived number needs its formula in method"
    ends = (metric.low, metric.high)
    if (None in ends) != (ends == (None, None)) or (metric.level is not None and None in ends):
        yield "an interval needs low and high"
    elif metric.low is not None and metric.high is not None and metric.low > metric.high:
        yield f"low {metric.low} is more than high {metric.high}"
    elif metric.low is not None and metric.high is not None and not metric.low <= metric.value <= metric.high:
        yield f"the value {metric.value} is outside of its interval, {metric.low} to {metric.high}"


def measurement_problems(name: str, metric: Metric, counted: int) -> Iterator[str]:
    """The problems of a number that was measured in the runs, of which `counted` count."""
    if metric.value is None:
        return
    if name.endswith("_per_second") and not (metric.value > 0 and metric.unit.endswith("/s")):
        yield f"a rate must be above 0 and per second, got {metric.value} {metric.unit}"
    if "usd_per_" in name and not (metric.value >= 0 and metric.unit.startswith("USD")):
        yield f"a cost must be 0 USD or more, got {metric.value} {metric.unit}"
    if metric.origin == QUOTED:
        return
    if not is_event(name) and not metric.n == counted >= FEWEST_RUNS:
        yield f"n is {metric.n}, and {counted} runs count: n must be their number, and at least {FEWEST_RUNS}"
    elif metric.low is None and (metric.n or 0) >= FEWEST_RUNS:
        yield f"n is {metric.n}, so the number needs an interval: low and high"

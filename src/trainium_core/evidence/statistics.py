"""Percentiles, means over runs and ratios of two sides, with confidence intervals."""

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, stdev, variance

from trainium_core.evidence.metric import DERIVED, FEWEST_RUNS, MEASURED, Metric, unknown

LEVEL = 0.95
PERCENTILES = (0.50, 0.95, 0.99)
NORMAL_975 = 1.96

_STUDENT = "mean of the runs, Student's t"
_RANGE = "percentile of each run; mean of the runs, and their range"
_WELCH = "geometric means of the runs, Welch's t of their logarithms"
_WIDEST = math.log(1e6)

_T_975 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""The 97.5th percentile of Student's t for 1 to 30 degrees of freedom; for more, the last is an upper bound."""


def fewest_samples(quantile: float) -> int:
    """The smallest number of samples of which one is beyond the quantile with a confidence of LEVEL, on both sides.

    72 for the 95th percentile, 368 for the 99th.
    """
    alpha = (1 - LEVEL) / 2
    rarest = max(quantile, 1 - quantile)
    return math.ceil(math.log(alpha) / math.log(rarest) - 1e-9)


def percentile(samples: Sequence[float], quantile: float) -> float:
    """The smallest sample that is not less than the given share of all samples."""
    return sorted(samples)[math.ceil(quantile * len(samples)) - 1]


def too_few(n: int, quantile: float, needed: int) -> str:
    return f"p{100 * quantile:g} of {n} samples: at least {needed} are needed"


def runs_percentile(runs: Sequence[Sequence[float]], quantile: float, unit: str) -> Metric:
    """The mean of the percentiles of the runs, each with one sample per step.

    Steps of a run are not independent and runs differ, so the interval is computed from the percentiles of the runs.
    If a run has fewer than `fewest_samples`, that interval contains the percentile too seldom, and is therefore
    replaced by the range of the runs' percentiles, which has no confidence level. Null if a run has so few steps that
    the percentile is its largest step.
    """
    n, shortest, needed = len(runs), min(map(len, runs), default=0), math.ceil(1 / (1 - quantile) - 1e-9)
    if n >= FEWEST_RUNS and shortest < needed:
        return unknown(unit, too_few(shortest, quantile, needed), n=n)
    values = [percentile(samples, quantile) for samples in runs]
    metric = runs_mean(values, unit)
    if metric.value is None:
        return metric
    if shortest < fewest_samples(quantile):
        ends = (*values, metric.value)  # The mean of equal numbers may differ from them in the last digit.
        return replace(metric, low=min(ends), high=max(ends), level=None, method=_RANGE)
    return replace(metric, method=f"percentile of each run; {metric.method}")


def runs_mean(values: Sequence[float], unit: str) -> Metric:
    """The mean of one value per run, with its interval. Null for fewer than FEWEST_RUNS runs.

    The steps of a run are not independent, so the interval is computed from runs, not from steps.
    """
    n = len(values)
    if n < FEWEST_RUNS:
        return unknown(unit, f"{n} runs: at least {FEWEST_RUNS} are needed", n=n)
    mean = fmean(values)
    half = _t_975(n - 1) * stdev(values) / math.sqrt(n)
    return Metric(
        value=mean, unit=unit, n=n, low=mean - half, high=mean + half, level=LEVEL, method=_STUDENT, origin=MEASURED
    )


def runs_ratio(values: Sequence[float], others: Sequence[float], formula: str) -> Metric:
    """The ratio of the geometric means of two sides' runs, with Welch's t interval of the logarithms.

    Null for fewer than FEWEST_RUNS runs of a side, for a value that is not above 0, and if the interval is too wide.
    """
    n = min(len(values), len(others))
    if n < FEWEST_RUNS:
        return unknown("ratio", f"{n} runs of a side: at least {FEWEST_RUNS} are needed", n=n)
    if min(*values, *others) <= 0:
        return unknown("ratio", "a run has a value that is not above 0", n=n)
    first, second = ([math.log(value) for value in side] for side in (values, others))
    difference = fmean(first) - fmean(second)
    half = _welch_half_width((first, second))
    low, high = difference - half, difference + half
    if max(abs(low), abs(high)) > _WIDEST:
        return unknown("ratio", "the runs of a side differ too much for an interval", n=n)
    return Metric(
        value=math.exp(difference),
        unit="ratio",
        n=n,
        low=math.exp(low),
        high=math.exp(high),
        level=LEVEL,
        method=f"{formula}; {_WELCH}",
        origin=DERIVED,
    )


def _welch_half_width(sides: Sequence[Sequence[float]]) -> float:
    """Half of the width of the interval of the difference of two means. Degrees of freedom are rounded down."""
    errors = [variance(side) / len(side) for side in sides]
    total = sum(errors)
    if not total:
        return 0.0
    shares = [error / total for error in errors]
    freedom = 1 / sum(share**2 / (len(side) - 1) for share, side in zip(shares, sides, strict=True))
    return _t_975(math.floor(freedom + 1e-9)) * math.sqrt(total)


def _t_975(freedom: int) -> float:
    return _T_975[min(freedom, len(_T_975)) - 1]

"""Percentiles, means over runs and ratios of two sides, with confidence intervals."""

import math
import random
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from statistics import fmean, stdev

from trainium_core.evidence.record import DERIVED, MEASURED, Metric, unknown

LEVEL = 0.95
RESAMPLES = 2000
SEED = 20261124
PERCENTILES = (0.50, 0.95, 0.99)
FEWEST_RUNS = 3
NORMAL_975 = 1.96

_ORDER_STATISTICS = "order statistics"
_STUDENT = "mean of the runs, Student's t"
_BOOTSTRAP = f"{{}}; bootstrap over runs, {RESAMPLES} resamples, widened by Student's t"
_WIDEST = math.log(1e6)

_T_975 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""The 97.5th percentile of Student's t for 1 to 30 degrees of freedom; for more, the last is an upper bound."""


def fewest_samples(quantile: float) -> int:
    """The smallest number of samples whose order statistics bound the quantile with a confidence of LEVEL.

    72 for the 95th percentile, 368 for the 99th.
    """
    alpha = (1 - LEVEL) / 2
    rarest = max(quantile, 1 - quantile)
    return math.ceil(math.log(alpha) / math.log(rarest) - 1e-9)


def percentile(
    samples: Sequence[float], quantile: float, unit: str, *, origin: str = MEASURED, source: str | None = None
) -> Metric:
    """A percentile with its interval of order statistics.

    Null below `fewest_samples`: a bound of the interval is then beyond all samples.
    """
    n, needed = len(samples), fewest_samples(quantile)
    if n < needed:
        return unknown(unit, too_few(n, quantile), n=n)
    ordered = sorted(samples)
    low, high = _interval(n, quantile)
    return Metric(
        value=ordered[math.ceil(quantile * n) - 1],
        unit=unit,
        n=n,
        low=ordered[low],
        high=ordered[high],
        level=LEVEL,
        method=_ORDER_STATISTICS,
        origin=origin,
        source=source,
    )


def too_few(n: int, quantile: float) -> str:
    return f"p{100 * quantile:g} of {n} samples: at least {fewest_samples(quantile)} are needed"


@cache
def _interval(n: int, quantile: float) -> tuple[int, int]:
    """Indices of the order statistics that bound the quantile with a confidence of at least LEVEL.

    The number of samples below the quantile is binomial; each tail gets half of 1 - LEVEL.
    """
    alpha = (1 - LEVEL) / 2
    cumulative = list(accumulate(_binomial(n, count, quantile) for count in range(n + 1)))
    low = sum(below <= alpha for below in cumulative) - 1
    high = next(count for count, below in enumerate(cumulative) if below >= 1 - alpha)
    return max(low, 0), min(high, n - 1)


def _binomial(n: int, count: int, probability: float) -> float:
    logs = math.lgamma(n + 1) - math.lgamma(count + 1) - math.lgamma(n - count + 1)
    return math.exp(logs + count * math.log(probability) + (n - count) * math.log1p(-probability))


def runs_mean(values: Sequence[float], unit: str) -> Metric:
    """The mean of one value per run, with its interval. Null for fewer than FEWEST_RUNS runs.

    The steps of a run are not independent, so the interval is computed from runs, not from steps.
    """
    n = len(values)
    if n < FEWEST_RUNS:
        return unknown(unit, f"{n} runs: at least {FEWEST_RUNS} are needed", n=n)
    mean = fmean(values)
    half = _T_975[min(n - 1, len(_T_975)) - 1] * stdev(values) / math.sqrt(n)
    return Metric(
        value=mean, unit=unit, n=n, low=mean - half, high=mean + half, level=LEVEL, method=_STUDENT, origin=MEASURED
    )


def runs_ratio(values: Sequence[float], others: Sequence[float], formula: str) -> Metric:
    """The ratio of the geometric means of two sides' runs, with a bootstrap interval over runs.

    Null for fewer than FEWEST_RUNS runs of a side, for a value that is not above 0, and if the interval is too wide.

    The percentile interval of a bootstrap contains the true ratio in only 78% to 92% of all cases with three to ten
    runs. Its distances from the ratio are therefore widened by Student's t, for the side with fewer runs.
    """
    n = min(len(values), len(others))
    if n < FEWEST_RUNS:
        return unknown("ratio", f"{n} runs of a side: at least {FEWEST_RUNS} are needed", n=n)
    if min(*values, *others) <= 0:
        return unknown("ratio", "a run has a value that is not above 0", n=n)
    sides = [[math.log(value) for value in side] for side in (values, others)]
    difference = fmean(sides[0]) - fmean(sides[1])
    randomness = random.Random(SEED)
    resampled = ([fmean(randomness.choices(side, k=len(side))) for side in sides] for _ in range(RESAMPLES))
    errors = sorted(first - second - difference for first, second in resampled)
    widened = _T_975[min(n - 1, len(_T_975)) - 1] / NORMAL_975 * math.sqrt(n / (n - 1))
    rank = math.floor((1 - LEVEL) / 2 * len(errors))
    low, high = (difference + widened * errors[at] for at in (rank, -1 - rank))
    if max(abs(low), abs(high)) > _WIDEST:
        return unknown("ratio", "the runs of a side differ too much for an interval", n=n)
    return Metric(
        value=math.exp(difference),
        unit="ratio",
        n=n,
        low=math.exp(low),
        high=math.exp(high),
        level=LEVEL,
        method=_BOOTSTRAP.format(formula),
        origin=DERIVED,
    )

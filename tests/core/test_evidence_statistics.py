"""Percentiles of known distributions, and how often an interval contains the true value."""

import math
import random
from statistics import NormalDist

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainium_core.evidence.metric import Metric
from trainium_core.evidence.statistics import fewest_samples, percentile, runs_mean, runs_percentile, runs_ratio

DRAWS = 1000
LEAST_COVERED = 0.93 * DRAWS


def holds(metric: Metric, true: float) -> bool:
    assert metric.low is not None
    assert metric.high is not None
    return metric.low <= true <= metric.high


def run_of_steps(randomness: random.Random, n: int, spread: float, correlation: float) -> list[float]:
    """Seconds of steps with 2% noise around the mean of the run, which differs from 1 by `spread`. AR(1)."""
    mean, noise, rest = 1 + randomness.gauss(0, spread), randomness.gauss(0, 1), math.sqrt(1 - correlation**2)
    steps: list[float] = []
    for _ in range(n):
        steps.append(mean * (1 + 0.02 * noise))
        noise = correlation * noise + rest * randomness.gauss(0, 1)
    return steps


@pytest.mark.parametrize(("spread", "correlation"), [(0.0, 0.0), (0.01, 0.0), (0.02, 0.0), (0.0, 0.8)])
@pytest.mark.parametrize(("quantile", "n"), [(0.5, 200), (0.95, 200), (0.99, 368)])
def test_interval_of_a_percentile_covers_it(quantile: float, n: int, spread: float, correlation: float) -> None:
    randomness = random.Random(2)
    true = 1 + 0.02 * NormalDist().inv_cdf(quantile)
    covered = 0
    for _ in range(DRAWS):
        metric = runs_percentile([run_of_steps(randomness, n, spread, correlation) for _ in range(3)], quantile, "s")
        assert (metric.n, metric.level) == (3, 0.95)
        covered += holds(metric, true)
    assert covered >= LEAST_COVERED


@pytest.mark.parametrize(("quantile", "fewest"), [(0.5, 6), (0.95, 72), (0.99, 368), (0.999, 3688)])
def test_percentile_of_short_runs_has_their_range(quantile: float, fewest: int) -> None:
    assert fewest_samples(quantile) == fewest
    runs = [[float(number)] * (fewest - 1) for number in (1, 2, 6)]
    short = runs_percentile(runs, quantile, "s")
    assert (short.value, short.low, short.high, short.level) == (3, 1, 6, None)
    assert runs_percentile([[1.0] * fewest] * 3, quantile, "s").level == 0.95


@given(st.lists(st.floats(1e-6, 1e6), min_size=3, max_size=8))
def test_percentile_is_within_its_range(values: list[float]) -> None:
    metric = runs_percentile([[value] * 20 for value in values], 0.95, "s")
    assert holds(metric, metric.value or 0)


def test_largest_step_of_a_run_is_no_percentile() -> None:
    null = runs_percentile([[1.0] * 99] * 3, 0.99, "s")
    assert (null.value, null.why_null) == (None, "p99 of 99 samples: at least 100 are needed")
    assert runs_percentile([[1.0] * 100] * 3, 0.99, "s").value == 1


@pytest.mark.parametrize(("quantile", "value"), [(0.5, 500), (0.95, 950), (0.99, 990)])
def test_percentile_of_known_samples_is_exact(quantile: float, value: float) -> None:
    samples = [float(number) for number in range(1, 1001)]
    random.Random(1).shuffle(samples)
    assert percentile(samples, quantile) == value
    assert runs_percentile([samples] * 3, quantile, "s").value == pytest.approx(value)


@pytest.mark.parametrize("n", [3, 5, 10, 40])
def test_interval_of_a_mean_covers_it(n: int) -> None:
    randomness = random.Random(3)
    drawn = ([randomness.gauss(10, 1) for _ in range(n)] for _ in range(DRAWS))
    assert sum(holds(runs_mean(values, "tokens/s"), 10) for values in drawn) >= LEAST_COVERED


@pytest.mark.parametrize("counts", [(3, 3), (3, 10), (8, 8)])
@pytest.mark.parametrize("spreads", [(0.02, 0.02), (0.02, 0.1), (0.1, 0.02)])
def test_interval_of_a_ratio_covers_it(counts: tuple[int, int], spreads: tuple[float, float]) -> None:
    randomness = random.Random(4)
    covered = 0
    for _ in range(DRAWS):
        first, second = (
            [math.exp(randomness.gauss(0, spread)) for _ in range(n)] for n, spread in zip(counts, spreads, strict=True)
        )
        covered += holds(runs_ratio([2 * value for value in first], second, "a / b"), 2)
    assert covered >= LEAST_COVERED


@settings(max_examples=20)
@given(
    st.lists(st.floats(1e-3, 1e6), min_size=3, max_size=8),
    st.lists(st.floats(1e-3, 1e6), min_size=3, max_size=8),
)
def test_ratio_has_a_finite_interval_or_a_reason(values: list[float], others: list[float]) -> None:
    metric = runs_ratio(values, others, "a / b")
    if metric.value is None:
        assert metric.why_null == "the runs of a side differ too much for an interval"
    else:
        assert metric.low is not None
        assert metric.high is not None
        assert 0 < metric.low <= metric.value * (1 + 1e-9)
        assert metric.value <= metric.high * (1 + 1e-9)
    assert runs_ratio(values, others, "a / b") == metric


def test_equal_runs_have_a_ratio_without_width() -> None:
    metric = runs_ratio([4.0] * 3, [2.0] * 3, "a / b")
    assert metric.value == pytest.approx(2)
    assert (metric.low, metric.high) == (pytest.approx(2), pytest.approx(2))
    assert (metric.n, metric.origin) == (3, "derived")


@pytest.mark.parametrize("few", [[], [1.0], [1.0, 2.0]])
def test_fewer_than_three_runs_give_no_number(few: list[float]) -> None:
    for metric in (runs_mean(few, "s"), runs_ratio(few, [1.0] * 3, "a / b"), runs_ratio([1.0] * 3, few, "x")):
        assert metric.value is None
        assert "at least 3 are needed" in (metric.why_null or "")

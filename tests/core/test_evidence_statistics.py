"""Percentiles of known distributions, and how often an interval contains the true value."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainium_core.evidence import statistics
from trainium_core.evidence.record import Metric
from trainium_core.evidence.statistics import fewest_samples, percentile, runs_mean, runs_ratio

DRAWS = 1000
LEAST_COVERED = 0.93 * DRAWS


def holds(metric: Metric, true: float) -> bool:
    assert metric.low is not None
    assert metric.high is not None
    return metric.low <= true <= metric.high


@pytest.mark.parametrize(("quantile", "fewest"), [(0.5, 6), (0.95, 72), (0.99, 368), (0.999, 3688)])
def test_percentile_of_too_few_samples_is_null(quantile: float, fewest: int) -> None:
    assert fewest_samples(quantile) == fewest
    assert percentile([1.0] * fewest, quantile, "s").value == 1.0
    null = percentile([1.0] * (fewest - 1), quantile, "s")
    assert (null.value, null.low, null.n) == (None, None, fewest - 1)
    assert null.why_null == f"p{100 * quantile:g} of {fewest - 1} samples: at least {fewest} are needed"


@pytest.mark.parametrize(("quantile", "value"), [(0.5, 500), (0.95, 950), (0.99, 990)])
def test_percentile_of_known_samples_is_exact(quantile: float, value: float) -> None:
    samples = [float(number) for number in range(1, 1001)]
    random.Random(1).shuffle(samples)
    metric = percentile(samples, quantile, "ms")
    assert (metric.value, metric.n, metric.unit, metric.level) == (value, 1000, "ms", 0.95)
    assert holds(metric, value)


@pytest.mark.parametrize(("quantile", "n"), [(0.5, 6), (0.5, 50), (0.95, 72), (0.95, 200), (0.99, 368)])
def test_interval_of_a_percentile_covers_it(quantile: float, n: int) -> None:
    randomness = random.Random(2)
    true = -math.log(1 - quantile)
    drawn = ([randomness.expovariate(1) for _ in range(n)] for _ in range(DRAWS))
    assert sum(holds(percentile(samples, quantile, "s"), true) for samples in drawn) >= LEAST_COVERED


@pytest.mark.parametrize("n", [3, 5, 10, 40])
def test_interval_of_a_mean_covers_it(n: int) -> None:
    randomness = random.Random(3)
    drawn = ([randomness.gauss(10, 1) for _ in range(n)] for _ in range(DRAWS))
    assert sum(holds(runs_mean(values, "tokens/s"), 10) for values in drawn) >= LEAST_COVERED


@pytest.mark.parametrize(("n", "spreads"), [(3, (0.02, 0.02)), (3, (0.02, 0.1)), (8, (0.02, 0.1))])
def test_interval_of_a_ratio_covers_it(n: int, spreads: tuple[float, float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "RESAMPLES", 200)
    randomness = random.Random(4)
    covered = 0
    for _ in range(DRAWS):
        first, second = ([math.exp(randomness.gauss(0, spread)) for _ in range(n)] for spread in spreads)
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

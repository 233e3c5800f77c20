"""What a record states about another record is computed again from both."""

from dataclasses import replace

import pytest

from tests.core.evidence_records import with_hardware, with_metric, with_workload
from tests.core.test_pilot_report import GOOD, GPU, evidence, twelve_months
from trainium_core.evidence.comparability import with_missing_ratios
from trainium_core.evidence.decision import GO, NOT_YET, decide
from trainium_core.evidence.fidelity import LOSS_CURVES
from trainium_core.evidence.gates import judged_fidelity
from trainium_core.evidence.metric import Metric, unknown
from trainium_core.evidence.record import Comparability, Record
from trainium_core.evidence.statistics import runs_mean, runs_ratio

REFERENCE = GPU.runs[0].loss[1:4]
RATIO = Metric(value=1.0, unit="ratio", low=0.9, high=1.1, level=0.95, origin="derived", method="x")


def training(losses: tuple[tuple[float | None, ...], ...]) -> Record:
    """A Trainium record with these losses in each run, and a fidelity of 0.001 against those of the GPU."""
    runs = tuple(replace(run, loss=losses) for run in GOOD.runs)
    met = judged_fidelity(LOSS_CURVES, GPU.id, 0.001, 0.01, compared=9, expected=9, counted=9)
    return with_workload(replace(GOOD, runs=runs, fidelity=(met,)), steps=3)


def reference() -> Record:
    """The GPU record with three counted steps, 2 to 4."""
    runs = tuple(replace(run, loss=REFERENCE, steps=3, last_step=4, phases={}) for run in GPU.runs)
    return with_workload(replace(GPU, runs=runs), steps=3)


def scaled(factor: float) -> tuple[tuple[float | None, ...], ...]:
    return tuple((step, (loss or 0.0) * factor) for step, loss in REFERENCE)


@pytest.mark.parametrize(
    ("losses", "problem"),
    [
        ((*scaled(1.001)[:2], (4.0, None)), "is 'met', but both results files give 'not met'"),
        (scaled(1.001)[:2], "results files give 'not measured': the side has no loss at step 4 with seed 1"),
        (scaled(5), "is 'met', but both results files give 'not met'"),
        (scaled(1.002), "is 0.001, but both results files give 0.00"),
    ],
)
def test_fidelity_that_the_losses_contradict_prevents_go(
    losses: tuple[tuple[float | None, ...], ...], problem: str
) -> None:
    assert decide(evidence(training(scaled(1.001)), reference())).verdict == GO
    decision = decide(evidence(training(losses), reference()))
    assert (decision.verdict, len(decision.reasons)) == (NOT_YET, 1)
    assert problem in decision.reasons[0]


@pytest.mark.parametrize("counts", [{"compared": 8, "expected": 8}, {"counted": 300}, {"counted": None}])
def test_wrong_number_of_compared_losses_prevents_go(counts: dict[str, int | None]) -> None:
    record = training(scaled(1.001))
    record = replace(record, fidelity=(replace(record.fidelity[0], **counts),))
    decision = decide(evidence(record, reference()))
    assert decision.verdict == NOT_YET
    assert "but both results files give 9 of 9 values at 9 counted steps" in decision.reasons[0]


def test_reference_without_a_record_prevents_go() -> None:
    decision = decide(evidence(GOOD))
    assert decision.verdict == NOT_YET
    assert decision.reasons == ("lm-trn2 compares its results with lm-p5, whose results file is missing",)


@pytest.mark.parametrize(
    ("other", "ratio", "problem"),
    [
        (with_metric(replace(GPU, runs=GOOD.runs), value=10.2), RATIO, ""),
        (GPU, replace(RATIO, value=1.08), "the ratio tokens_per_second to lm-p5 is 1.08, but the values are 10.0 and"),
        (replace(GPU, metrics={}), RATIO, "to lm-p5 is 1.0, but the values are 10.0 and None"),
        (GPU, replace(RATIO, value=0.2, low=0.1, high=0.3), "the ratio tokens_per_second to lm-p5 is 0.2, but"),
        (with_workload(GPU, global_batch=8), RATIO, "it is not comparable: global_batch (64 against 8)"),
    ],
)
def test_ratio_that_the_values_contradict_prevents_go(other: Record, ratio: Metric, problem: str) -> None:
    compared = Comparability(
        against=GPU.id, equal=(), different=(), comparable=True, ratios={"tokens_per_second": ratio}
    )
    decision = decide(evidence(replace(GOOD, comparable=(compared,)), other))
    assert decision.verdict == (NOT_YET if problem else GO)
    assert problem in "".join(decision.reasons)


def measured(record: Record, steps: float) -> Record:
    """The record with runs of 100 steps in 10, 12 and 11 s, and with the steps per second, times a factor."""
    rates = [10.0, 100 / 12, 100 / 11]
    runs = tuple(replace(run, steps=100, tokens=None, phases={"step": 100 / rate}, step_seconds=(1 / rate,) * 100)
                 for run, rate in zip(record.runs, rates, strict=True))  # fmt: skip
    metric = runs_mean([rate * steps for rate in rates], "steps/s")
    return replace(record, runs=runs, metrics={**record.metrics, "steps_per_second": metric})


def test_metric_that_its_runs_contradict_prevents_go() -> None:
    assert decide(evidence(measured(GOOD, 1), GPU)).verdict == GO
    decision = decide(evidence(measured(GOOD, 3), GPU))
    assert decision.verdict == NOT_YET
    assert "lm-trn2: steps_per_second is 27.4" in decision.reasons[0]
    assert "but its runs give 9.1" in decision.reasons[0]
    percentile = Metric(value=0.2, unit="s", n=3, low=0.1, high=0.3, origin="measured")
    wrong = measured(GOOD, 1)
    wrong = replace(wrong, metrics={**wrong.metrics, "step_seconds_p50": percentile})
    assert "step_seconds_p50 is 0.2" in decide(evidence(wrong, GPU)).reasons[0]


def test_cost_that_its_runs_contradict_prevents_go() -> None:
    name = "usd_per_million_tokens_paid"
    cost = Metric(value=1.0, unit="USD", n=3, low=0.9, high=1.1, level=0.95, origin="derived", method="x")
    priced = with_hardware(replace(GPU, metrics={**GPU.metrics, name: cost}), usd_hour=36.0)
    decision = decide(evidence(GOOD, priced))
    assert decision.verdict == NOT_YET
    assert "lm-p5: usd_per_million_tokens_paid is 1.0 (0.9 to 1.1), but its runs give 1001" in decision.reasons[0]


def test_narrowed_interval_of_a_ratio_prevents_go() -> None:
    ratio = runs_ratio([10.0, 100 / 12, 100 / 11], [9.6, 10.0, 10.4], "x")
    narrow = replace(ratio, low=(ratio.value or 0) * 0.99, high=(ratio.value or 0) * 1.01)
    for stated, verdict in ((ratio, GO), (narrow, NOT_YET)):
        compared = Comparability(
            against=GPU.id, equal=(), different=(), comparable=True, ratios={"steps_per_second": stated}
        )
        theirs = replace(GPU, metrics={**GPU.metrics, "steps_per_second": runs_mean([9.6, 10.0, 10.4], "steps/s")})
        theirs = replace(theirs, runs=tuple(
            replace(run, steps=100, phases={"step": 100 / rate}, tokens=None)
            for run, rate in zip(theirs.runs, (9.6, 10.0, 10.4), strict=True)
        ))  # fmt: skip
        decision = decide(evidence(replace(measured(GOOD, 1), comparable=(compared,)), theirs))
        assert decision.verdict == verdict
    assert "but the runs give" in decision.reasons[0]


def test_run_with_fewer_steps_than_the_workload_prevents_go() -> None:
    runs = tuple(replace(run, steps=2, last_step=3) for run in GOOD.runs)
    decision = decide(evidence(replace(GOOD, runs=runs), GPU))
    assert decision.verdict == NOT_YET
    assert "lm-trn2: the run lm-1 counts with 2 steps, but the workload has 100" in decision.reasons[0]


def quoted(low: float | None = None, high: float | None = None) -> Record:
    """An imported record with a throughput of 20 tokens/s."""
    rate = Metric(
        value=20.0, unit="tokens/s", low=low, high=high, origin="quoted", source="run 4711", date="2026-10-20"
    )
    return replace(GPU, id="lm-h100", runs=(), gates=(), metrics={"tokens_per_second": rate})


def test_ratio_to_an_imported_record_names_its_source_and_date() -> None:
    ours, _ = with_missing_ratios([GOOD, quoted()])
    ratio = ours.comparable[0].ratios["tokens_per_second"]
    assert (ratio.value, ratio.low, ratio.why_null) == (0.5, None, "a side has no interval above 0")
    assert ratio.source == "lm-h100: quoted, run 4711, 2026-10-20"
    ours, _ = with_missing_ratios([GOOD, quoted(low=18.0, high=22.0)])
    ratio = ours.comparable[0].ratios["tokens_per_second"]
    assert (ratio.low, ratio.high, ratio.level) == (9 / 22, 11 / 18, None)
    assert "from the ends of both intervals" in str(ratio.method)


def test_record_that_is_not_comparable_has_no_ratio() -> None:
    ours, _ = with_missing_ratios([GOOD, with_workload(quoted(), seq=7)])
    ratio = ours.comparable[0].ratios["tokens_per_second"]
    assert (ratio.value, ratio.why_null) == (None, "not comparable: seq (128 against 7)")


def test_ratio_of_records_that_were_measured_together_stays() -> None:
    compared = Comparability(against=GPU.id, equal=(), different=(), comparable=True, ratios={"x": RATIO})
    ours = replace(GOOD, comparable=(compared,))
    assert with_missing_ratios([ours, GPU]) == (ours, GPU)


def test_ratio_of_paid_costs_needs_the_same_purchase_option() -> None:
    name = "usd_per_million_tokens_paid"
    cost = Metric(value=1.0, unit="USD", n=3, low=0.9, high=1.1, level=0.95, origin="derived", method="x")
    compared = Comparability(against=GPU.id, equal=(), different=(), comparable=True, ratios={name: RATIO})
    ours = replace(GOOD, metrics={**GOOD.metrics, name: cost}, comparable=(compared,))
    theirs = replace(GPU, metrics={**GPU.metrics, name: cost})
    assert decide(evidence(ours, theirs)).verdict == GO
    decision = decide(evidence(ours, with_hardware(theirs, purchase="spot")))
    assert decision.verdict == NOT_YET
    assert "but the paid costs are not comparable: price basis (on-demand against spot)" in decision.reasons[0]


def with_amount(record: Record, name: str, change: float) -> Record:
    """The record with a changed amount and, if the amount has a range, a range that contains it."""
    metric = record.metrics[name]
    value = (metric.value or 0.0) + change
    ends = {"low": min(metric.low, value), "high": max(metric.high or value, value)} if metric.low is not None else {}
    return replace(record, metrics={**record.metrics, name: replace(metric, value=value, **ends)})


@pytest.mark.parametrize(
    ("name", "at", "problems"),
    [
        ("saving", 0, ["the saving is"]),
        ("total", 0, ["but its lines add up to", "the saving is"]),
        ("total", 1, ["but its lines add up to", "the saving is"]),
        ("line: Engineering", 0, ["but its lines add up to", "the low end of", "the high end of", "the break-even is"]),
    ],
)
def test_amount_that_other_amounts_contradict_prevents_go(name: str, at: int, problems: list[str]) -> None:
    year = list(twelve_months())
    year[at] = with_amount(year[at], name, 1000.0)
    decision = decide(evidence(GOOD, GPU, *year))
    assert decision.verdict == NOT_YET
    assert len(decision.reasons) == len(problems)
    assert all(any(problem in reason for reason in decision.reasons) for problem in problems)


def test_saving_needs_a_comparable_other_side() -> None:
    ours, theirs = twelve_months()
    assert decide(evidence(GOOD, GPU, ours, theirs)).verdict == GO
    decision = decide(evidence(GOOD, GPU, ours))
    assert decision.reasons == (
        "tco-lm-trn2 compares its costs with those of tco-lm-p5, whose results file is missing",
    )
    decision = decide(evidence(GOOD, GPU, ours, with_workload(theirs, seq=7)))
    assert any("has a saving against tco-lm-p5, but it is not comparable: seq" in text for text in decision.reasons)


def test_amounts_that_are_unknown_contradict_nothing_but_a_known_sum() -> None:
    ours, theirs = twelve_months()
    line = next(name for name in ours.metrics if name.startswith("line: "))
    without = replace(ours, metrics={**ours.metrics, line: unknown("USD", "no price")})
    reasons = decide(evidence(GOOD, GPU, without, theirs)).reasons
    assert len(reasons) == 1
    assert "but a line is unknown" in reasons[0]
    none = unknown("USD", "no price")
    without = replace(without, metrics={**without.metrics, "total": none, "saving": none})
    reasons = decide(evidence(GOOD, GPU, without, theirs)).reasons
    assert reasons == ("tco-lm-trn2 has a break-even without a saving",)

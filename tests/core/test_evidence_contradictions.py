"""What a record states about another record is computed again from both."""

from dataclasses import replace

import pytest

from tests.core.evidence_records import with_metric, with_workload
from tests.core.test_pilot_report import GOOD, GPU, evidence
from trainium_core.evidence.comparability import with_missing_ratios
from trainium_core.evidence.decision import GO, NOT_YET, decide
from trainium_core.evidence.fidelity import LOSS_CURVES
from trainium_core.evidence.gates import judged_fidelity
from trainium_core.evidence.metric import Metric
from trainium_core.evidence.record import Comparability, Record

REFERENCE = GPU.runs[0].loss[:3]
RATIO = Metric(value=1.0, unit="ratio", low=0.9, high=1.1, level=0.95, origin="derived", method="x")


def training(losses: tuple[tuple[float | None, ...], ...]) -> Record:
    """A Trainium record with these losses in each run, and a fidelity of 0.001 against those of the GPU."""
    runs = tuple(replace(run, seed=seed, loss=losses) for seed, run in enumerate(GOOD.runs, start=1))
    met = judged_fidelity(LOSS_CURVES, GPU.id, 0.001, 0.01, compared=9, expected=9)
    return replace(GOOD, runs=runs, fidelity=(met,))


def reference() -> Record:
    return replace(GPU, runs=tuple(replace(run, loss=REFERENCE) for run in GPU.runs))


def scaled(factor: float) -> tuple[tuple[float | None, ...], ...]:
    return tuple((step, (loss or 0.0) * factor) for step, loss in REFERENCE)


@pytest.mark.parametrize(
    ("losses", "problem"),
    [
        ((*scaled(1.001)[:2], (3.0, None)), "is 'met', but both results files give 'not met'"),
        (scaled(1.001)[:2], "is 'met', but both results files give 'not measured'"),
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


def test_reference_without_a_record_prevents_go() -> None:
    decision = decide(evidence(GOOD))
    assert decision.verdict == NOT_YET
    assert decision.reasons == ("lm-trn2 compares its results with lm-p5, whose results file is missing",)


@pytest.mark.parametrize(
    ("other", "ratio", "problem"),
    [
        (with_metric(GPU, value=10.5), RATIO, ""),
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

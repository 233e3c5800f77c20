"""The comparison of results with a reference: losses by seed and step, and scores."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.core.evidence_records import GPU_SIDE, TRAINIUM_SIDE
from tests.core.test_evidence_bench import HARDWARE, bench_file, ended, record_of, run_of
from trainium_core.evidence.bench import MeasuredRun, measured_run
from trainium_core.evidence.bench_file import BenchFile, FidelityFile
from trainium_core.evidence.fidelity import loss_fidelity, recomputed_fidelity, with_fidelity
from trainium_core.evidence.gates import Fidelity
from trainium_core.evidence.imports import Imported
from trainium_core.evidence.metric import Metric
from trainium_core.evidence.record import Record, RecordedRun, read_record, record_text
from trainium_core.evidence.steps import training_steps
from trainium_core.jobs.follow import LogLine


@pytest.fixture
def spec(tmp_path: Path) -> BenchFile:
    return bench_file(tmp_path)


Losses = dict[tuple[int, int], float | None]


def record_with(side: Record, losses: Losses, counted: range) -> Record:
    """A record with the losses by seed and step, and with two runs that have these counted steps; none if imported."""
    runs = [
        RecordedRun(
            job=f"{side.id}-{seed}",
            seed=seed,
            steps=len(counted) or None,
            last_step=counted[-1] if counted else None,
            loss=tuple((float(step), loss) for (of_seed, step), loss in losses.items() if of_seed == seed),
        )
        for seed in (1, 2)
    ]
    workload = replace(side.workload, steps=len(counted))
    return replace(side, runs=tuple(runs), workload=workload, metrics={}, gates=())


def fidelity_of(
    losses: Losses,
    references: Losses,
    limit: float = 0.02,
    *,
    counted: range = range(1, 3),
    of_reference: range | None = None,
) -> Fidelity:
    ours = record_with(TRAINIUM_SIDE, losses, counted)
    theirs = record_with(GPU_SIDE, references, counted if of_reference is None else of_reference)
    return loss_fidelity(ours, theirs, (1, 2), limit)


REFERENCE: Losses = {(1, 1): 2.0, (1, 2): 1.0, (2, 1): 4.0, (2, 2): 2.0}


def test_losses_are_compared_at_every_counted_step_of_the_reference() -> None:
    check = fidelity_of({**REFERENCE, (1, 2): 1.01}, REFERENCE)
    assert (check.value, check.state, check.compared, check.expected) == (pytest.approx(0.01), "met", 4, 4)
    assert fidelity_of({**REFERENCE, (2, 2): 2.1}, REFERENCE).state == "not met"
    assert fidelity_of({**REFERENCE, (2, 2): 1e308}, {**REFERENCE, (2, 2): 0.0}).state == "not met"


def at_steps(*steps: int) -> Losses:
    return {(seed, step): 2.0 for seed in (1, 2) for step in steps}


@pytest.mark.parametrize("steps", [range(10, 101, 10), (3, 17, 30, 47, 60, 74, 87, 98, 101, 120)])
def test_losses_without_wide_gaps_count_with_the_number_of_steps(steps: Sequence[int]) -> None:
    check = fidelity_of(at_steps(*range(1, 1001)), at_steps(*steps), counted=range(2, 102))
    compared = 2 * sum(step < 102 for step in steps)
    assert (check.state, check.compared, check.expected, check.counted) == ("met", compared, compared, 200)


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ([1], "the reference has no losses from step 2 to 101 with seed 1"),
        ([1, 50], "the reference has a loss at 1 of 100 counted steps with seed 1"),
        ([*range(1, 12), 101], "the reference has a loss every 1 step, but none between steps 11 and 101 with seed 1"),
        ([*range(10, 70, 10)], "has a loss every 10 steps, but none between steps 60 and 102 with seed 1"),
        ([*range(70, 110, 10)], "has a loss every 10 steps, but none between steps 1 and 70 with seed 1"),
    ],
)
def test_losses_at_some_of_the_counted_steps_measure_nothing(steps: list[int], why: str) -> None:
    check = fidelity_of(at_steps(*steps), at_steps(*steps), counted=range(2, 102))
    assert (check.value, check.state) == (None, "not measured")
    assert why in str(check.why_null)


@pytest.mark.parametrize("step", [1, 3])
def test_every_step_that_both_sides_have_counts_in_the_value(step: int) -> None:
    reference = at_steps(1, 2, 3)
    check = fidelity_of({**reference, (2, step): 3.0}, reference, counted=range(2, 3))
    assert (check.state, check.compared, check.counted) == ("not met", 2, 2)


def test_steps_of_an_imported_reference_do_not_depend_on_the_graphs_of_the_side() -> None:
    reference, ours = at_steps(*range(1, 102)), at_steps(*range(1, 201))
    late = fidelity_of(ours, reference, counted=range(80, 180), of_reference=range(0))
    assert (late.state, late.compared, late.counted) == ("met", 200, 200)


def test_more_seeds_and_runs_without_a_seed_of_the_reference_do_not_count() -> None:
    ours, theirs = (record_with(side, REFERENCE, range(1, 3)) for side in (TRAINIUM_SIDE, GPU_SIDE))
    other = replace(theirs.runs[0], job="other", seed=3)
    failed = RecordedRun(job="failed", excluded="the job did not succeed")
    theirs = replace(theirs, runs=(*theirs.runs, other, failed))
    check = loss_fidelity(ours, theirs, (1, 2), 0.01)
    assert (check.state, check.compared) == ("met", 4)
    assert recomputed_fidelity(check, ours, theirs) == check


def test_runs_with_the_same_seed_measure_nothing() -> None:
    ours, theirs = (record_with(side, REFERENCE, range(1, 3)) for side in (TRAINIUM_SIDE, GPU_SIDE))
    theirs = replace(theirs, runs=(*theirs.runs, replace(theirs.runs[0], job="again")))
    check = loss_fidelity(ours, theirs, (1, 2), 0.01)
    assert (check.state, check.why_null) == ("not measured", "of the reference, two runs have the same seed, or none")


@pytest.mark.parametrize("odd", [(1, 2), (2, 2), (2, 3)])
def test_one_loss_that_is_not_finite_misses_the_limit(odd: tuple[int, int]) -> None:
    check = fidelity_of({**REFERENCE, odd: None}, REFERENCE)
    assert (check.value, check.state, check.not_finite) == (None, "not met", 1)
    assert f"1 of {5 if odd == (2, 3) else 4} losses are not finite" in str(check.why_null)


@pytest.mark.parametrize(
    ("ours", "theirs", "why"),
    [
        ({(1, 2), (2, 1), (2, 2)}, {*REFERENCE}, "the side has no loss at step 1 with seed 1"),
        ({(1, 1), (1, 2)}, {*REFERENCE}, "the side has no loss at step 1 with seed 2"),
        ({*REFERENCE}, {(1, 1), (1, 2)}, "the reference has no losses from step 1 to 2 with seed 2"),
    ],
)
def test_fidelity_needs_every_seed_and_step_of_the_reference(
    ours: set[tuple[int, int]], theirs: set[tuple[int, int]], why: str
) -> None:
    check = fidelity_of({key: REFERENCE[key] for key in ours}, {key: REFERENCE[key] for key in theirs})
    assert (check.value, check.state, check.why_null) == (None, "not measured", why)


def test_loss_of_the_reference_that_is_not_finite_measures_nothing() -> None:
    check = fidelity_of(REFERENCE, {**REFERENCE, (2, 1): None})
    assert check.state == "not measured"
    assert check.why_null == "the loss of the reference at step 1 with seed 2 is not finite"


def compared_with_gpu(spec: BenchFile, ours: list[MeasuredRun], theirs: list[MeasuredRun], **fidelity: Any) -> Record:
    file = replace(spec, fidelity=FidelityFile(**{"reference": "gpu", "loss_limit": 0.02, "scores": {}, **fidelity}))
    gpu = record_of(spec, theirs, 1, hardware_kind="gpu", hardware=replace(HARDWARE, type="p5.4xlarge"))
    record, reference = with_fidelity([record_of(spec, ours), gpu], file)
    assert reference is gpu
    assert read_record(record_text(record)) == record
    return record


def diverging(spec: BenchFile, seed: int) -> MeasuredRun:
    losses = (3.0, 1.5, "nan", "inf")
    texts = [f"TRN step={step} loss={loss} tokens=8 seconds=1" for step, loss in enumerate(losses, start=1)]
    return measured_run(ended(), training_steps([LogLine(attempt=1, rank=0, text=text) for text in texts]), spec, seed)


def test_run_that_diverges_to_nan_misses_its_limit(spec: BenchFile) -> None:
    runs = [run_of(spec, 1, seed) for seed in (1, 2, 3)]
    record = compared_with_gpu(spec, [diverging(spec, seed) for seed in (1, 2, 3)], runs)
    [check] = record.fidelity
    assert (check.state, check.not_finite, check.reference) == ("not met", 6, "lm-gpu")
    assert record.runs[0].loss == ((1.0, 3.0), (2.0, 1.5), (3.0, None), (4.0, None))
    [check] = compared_with_gpu(spec, [*runs[:2], diverging(spec, 3)], runs).fidelity
    assert (check.state, check.not_finite) == ("not met", 2)


def test_losses_equal_to_those_of_the_reference_are_a_warning(spec: BenchFile) -> None:
    runs = [run_of(spec, 1, seed) for seed in (1, 2, 3)]
    record = compared_with_gpu(spec, runs, runs)
    assert (record.fidelity[0].state, record.fidelity[0].compared) == ("met", 6)
    assert "was the reference compared with itself?" in record.warnings[0]
    assert record.warnings[1:] == ()


def test_measured_steps_after_the_last_loss_of_the_reference_are_a_warning(spec: BenchFile) -> None:
    runs = [run_of(spec, 1, seed) for seed in (1, 2, 3)]
    late = [replace(run, run=replace(run.run, last_step=5, loss=(*run.run.loss, (5.0, 0.7)))) for run in runs]
    record = compared_with_gpu(spec, late, runs)
    late_steps = "3 of 6 measured steps come after the last loss of lm-gpu, and were not compared with it"
    assert record.warnings[-1] == late_steps


def evaluated(spec: BenchFile, score: float) -> MeasuredRun:
    metric = Metric(
        value=score, unit="score", low=score - 0.1, high=score + 0.1, level=0.95, origin="imported", source="lm-eval"
    )
    return measured_run(ended(), (), spec, 1, (Imported(tool="lm-eval", metrics={"arc.acc": metric}),))


def test_interval_of_a_score_is_never_less_than_that_of_one_run(spec: BenchFile) -> None:
    metric = record_of(spec, [evaluated(spec, 0.6)] * 3).metrics["arc.acc"]
    assert (metric.value, metric.low, metric.high) == (pytest.approx(0.6), pytest.approx(0.5), pytest.approx(0.7))


@pytest.mark.parametrize(("score", "state"), [(0.62, "met"), (0.50, "not met"), (0.70, "not met")])
def test_score_of_another_tool_is_compared_with_that_of_the_reference(
    spec: BenchFile, score: float, state: str
) -> None:
    ours, theirs = ([evaluated(spec, value)] * 3 for value in (score, 0.61))
    record = compared_with_gpu(spec, ours, theirs, loss_limit=None, scores={"arc.acc": 0.02, "mmlu.acc": 0.02})
    of_arc, of_mmlu = record.fidelity
    assert (of_arc.method, of_arc.state) == ("difference of arc.acc", state)
    assert (of_mmlu.state, of_mmlu.why_null) == ("not measured", "lm-trainium has no mmlu.acc; lm-gpu has no mmlu.acc")

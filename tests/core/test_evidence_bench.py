"""The file of `trn bench`, the record of a side from the measurements of its runs, and its comparison with others."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.core.job_bucket import JOB
from trainium_core.evidence.bench import (
    MeasuredRun,
    SidePrices,
    measured_run,
    side_record,
    with_ratios,
)
from trainium_core.evidence.bench_file import BenchFile, read_bench_file, seeded
from trainium_core.evidence.gates import judged_gate
from trainium_core.evidence.imports import Imported
from trainium_core.evidence.metric import Metric
from trainium_core.evidence.record import Hardware, Record, Software, Tool, read_record, record_text
from trainium_core.evidence.recovery import RecoveredJob
from trainium_core.evidence.steps import training_steps
from trainium_core.evidence.toml_file import TomlFileError
from trainium_core.jobs.follow import LogLine
from trainium_core.jobs.progress import JobState
from trainium_wire.job import Outcome
from trainium_wire.job_progress import Attempt, NodeProgress
from trainium_wire.metric_sample import Utilization

FILE = """
name = "lm"
steps = 2
seeds = [1, 2, 3]

[workload]
model = "lm"
dataset_sha256 = "0"
seq = 128
global_batch = 8
precision = "bf16"

[sides.trainium]
job = "job.toml"
tuned = true

[sides.gpu]
job = "job.toml"
tuned = true
accelerators_used = 1

[gates]
tokens_per_second = ">= 10"
step_seconds_p95 = "<= 1"
"""
HARDWARE = Hardware(type="trn2.3xlarge", nodes=1, accelerators=1, used=1, purchase="on-demand")
PRICES = SidePrices(paid=3.6, list=7.2, source="list", date="2026-11-24")


def bench_file(folder: Path) -> BenchFile:
    (folder / "job.toml").write_text("")
    return read_bench_file(FILE.encode(), folder / "bench.toml")


@pytest.fixture
def spec(tmp_path: Path) -> BenchFile:
    return bench_file(tmp_path)


def ended(result: str = "succeeded", *, attempts: int = 1, **node: Any) -> JobState:
    outcome = Outcome(result=result, reason="a reason")
    nodes = (NodeProgress(node=0, instance_id="i-0", state="ended", at=None, **node),)
    all_attempts = [
        Attempt(number=n, started=None, instance_ids=(), resume_from=None, nodes=nodes) for n in range(1, attempts + 1)
    ]
    return JobState(job=JOB, attempts=tuple(all_attempts), outcome=outcome)


def run_of(spec: BenchFile, seconds: float, seed: int = 1, tokens: str = "tokens=8") -> MeasuredRun:
    texts = [f"TRN step={step} loss={3 / step} {tokens} seconds={seconds}" for step in (1, 2, 3, 4)]
    lines = [LogLine(attempt=1, rank=0, text=text) for text in texts]
    return measured_run(ended(phases={"first_step": 30.0}), training_steps(lines), spec, seed)


def record_of(spec: BenchFile, runs: list[MeasuredRun], side: int = 0, **more: Any) -> Record:
    runs = [replace(run, run=replace(run.run, job=f"train-{at}")) for at, run in enumerate(runs)]
    arguments: dict[str, Any] = {"hardware": HARDWARE, "prices": PRICES, "hardware_kind": "trainium", **more}
    return side_record(
        spec,
        spec.sides[side],
        runs,
        software=Software(),
        command="x",
        made="2026-11-24T12:00:00Z",
        tool=Tool(version="1"),
        **arguments,
    )


def test_record_has_rates_costs_and_gates(spec: BenchFile) -> None:
    runs = [run_of(spec, seconds, seed) for seed, seconds in ((1, 0.5), (2, 0.4), (3, 0.5))]
    record = record_of(spec, runs)
    assert read_record(record_text(record)) == record
    tokens = record.metrics["tokens_per_second"]
    assert (tokens.value, tokens.n, tokens.origin) == (pytest.approx((16 + 20 + 16) / 3), 3, "measured")
    assert record.metrics["steps_per_second"].value == pytest.approx((2 + 2.5 + 2) / 3)
    paid, listed = (record.metrics[f"usd_per_million_tokens_{name}"] for name in ("paid", "list"))
    assert paid.value == pytest.approx((1e3 / 16 + 1e3 / 20 + 1e3 / 16) / 3)
    assert (listed.value, listed.origin, listed.source) == (pytest.approx(2 * (paid.value or 0)), "derived", "list")
    assert record.metrics["step_seconds_p50"].value == pytest.approx(1.4 / 3)
    assert record.metrics["step_seconds_p95"].why_null == "p95 of 2 samples: at least 20 are needed"
    assert record.runs[1].step_seconds == (0.4, 0.4)
    assert [(gate.name, gate.state) for gate in record.gates] == [
        ("tokens_per_second", "met"),
        ("step_seconds_p95", "not measured"),
    ]
    assert record.inputs == (spec.source,)
    assert (
        record.workload.warmup
        == "the first step, and all steps up to the last compiled or loaded graph before the counted steps"
    )
    run = record.runs[0]
    assert (run.steps, run.tokens, run.seed, run.phases["step"], run.phases["data"]) == (2, 16, 1, 1.0, None)
    assert run.loss == ((1.0, 3.0), (2.0, 1.5), (3.0, 1.0), (4.0, 0.75))


@pytest.mark.parametrize(
    ("graphs", "phase"), [({"compiled": 3}, "compile_cold"), ({"compiled": 0, "cached": 3}, "compile_warm"), ({}, None)]
)
def test_first_step_is_cold_or_warm_by_its_graphs(spec: BenchFile, graphs: dict[str, int], phase: str | None) -> None:
    lines = [LogLine(attempt=1, rank=0, text=f"TRN step={step} seconds=1") for step in (1, 2, 3)]
    run = measured_run(ended(phases={"first_step": 30.0}, graphs=graphs), training_steps(lines), spec, 1).run
    known = {name for name, seconds in run.phases.items() if seconds == 30.0}
    assert known == ({phase} if phase else set())


@pytest.mark.parametrize(
    ("state", "texts", "why"),
    [
        (ended("failed"), ["TRN step=1"], "the job did not succeed: a reason"),
        (ended(attempts=2), ["TRN step=1"], "it was restarted: it has 2 attempts"),
        (ended(device_errors=("Neuron device 3: errors",)), ["TRN step=1"], "node 0: Neuron device 3: errors"),
        (ended(), ["hello"], "it prints no progress lines"),
        (ended(), ["TRN step=1", "TRN step=2"], "it has fewer than 2 steps in a row after the warm-up"),
    ],
)
def test_unusable_run_is_excluded_with_its_reason(spec: BenchFile, state: JobState, texts: list[str], why: str) -> None:
    lines = [LogLine(attempt=1, rank=0, text=text) for text in texts]
    excluded = measured_run(state, training_steps(lines), spec, 1)
    assert excluded.run.excluded == why
    record = record_of(spec, [excluded, run_of(spec, 1), run_of(spec, 1)])
    metric = record.metrics["tokens_per_second"]
    assert (metric.value, metric.why_null) == (None, "2 runs: at least 3 are needed")
    assert any(why in warning for warning in record.warnings)


def test_run_without_seconds_or_tokens_has_a_reason(spec: BenchFile) -> None:
    record = record_of(spec, [run_of(spec, 0.5, tokens="x=1")] * 3)
    assert record.metrics["tokens_per_second"].why_null == "a counted progress line has no tokens= with a number"
    assert record.metrics["usd_per_million_tokens_paid"].value is None
    assert record.metrics["steps_per_second"].value == 2
    lines = [LogLine(attempt=1, rank=0, text=f"TRN step={step} tokens=8") for step in (1, 2, 3)]
    without = measured_run(ended(), training_steps(lines), spec, 1)
    record = record_of(spec, [without] * 3)
    assert record.metrics["step_seconds_p50"].why_null == "a counted progress line has no seconds= with a number"


@pytest.mark.parametrize(
    ("pairs", "metric", "why"),
    [
        ("tokens=8 seconds=0", "steps_per_second", "step 2 has seconds=0: it must be above 0"),
        ("tokens=8 seconds=-1.5", "tokens_per_second", "step 2 has seconds=-1.5: it must be above 0"),
        ("tokens=8 seconds=nan", "steps_per_second", "a counted progress line has no seconds= with a number"),
        ("tokens=0 seconds=1", "tokens_per_second", "the counted steps have 0 tokens: the sum must be above 0"),
        ("tokens=-4 seconds=1", "tokens_per_second", "the counted steps have -8 tokens: the sum must be above 0"),
    ],
)
def test_unusable_number_in_progress_lines_is_the_reason(spec: BenchFile, pairs: str, metric: str, why: str) -> None:
    lines = [LogLine(attempt=1, rank=0, text=f"TRN step={step} {pairs}") for step in (1, 2, 3)]
    record = record_of(spec, [measured_run(ended(), training_steps(lines), spec, 1)] * 3)
    assert record.metrics[metric].why_null == why
    assert record.metrics["usd_per_million_tokens_paid"].why_null == why


def test_unknown_step_seconds_have_their_own_reason(spec: BenchFile) -> None:
    lines = [LogLine(attempt=1, rank=0, text=f"TRN step={step} seconds=1") for step in (2, 4, 6)]
    record = record_of(spec, [measured_run(ended(), training_steps(lines), spec, 1)] * 3)
    assert record.metrics["tokens_per_second"].why_null == "a counted progress line has no tokens= with a number"
    assert record.metrics["step_seconds_p50"].why_null == "a progress line reports several steps"
    record = record_of(spec, [measured_run(ended("failed"), (), spec, 1)] * 3)
    assert record.metrics["step_seconds_p50"].why_null == "0 of 3 runs count: at least 3 are needed"


@pytest.mark.parametrize(("missing", "value", "n"), [(0, 40.0, 3), (1, None, 2), (3, "no metric", 0)])
def test_utilization_of_the_nodes_is_a_metric_if_all_runs_have_it(
    spec: BenchFile, missing: int, value: float | str | None, n: int
) -> None:
    lines = [LogLine(attempt=1, rank=0, text=f"TRN step={step} tokens=8 seconds=1") for step in (1, 2, 3, 4)]
    measured = [None if run < missing else Utilization(core_utilization=30.0 + 10 * run) for run in range(3)]
    runs = [measured_run(ended(utilization=one), training_steps(lines), spec, 1) for one in measured]
    metric = record_of(spec, runs).metrics.get("core_utilization")
    assert (metric.value, metric.n) == (value, n) if metric else value == "no metric"


def test_unknown_price_makes_costs_null(spec: BenchFile) -> None:
    prices = SidePrices(paid=None, list=None, source="", date="", why_unknown="the lab's machines have no price")
    record = record_of(spec, [run_of(spec, 0.5)] * 3, prices=prices)
    for name in ("paid", "list"):
        assert record.metrics[f"usd_per_million_tokens_{name}"].why_null == "the lab's machines have no price"


def compared(spec: BenchFile, **gpu: Any) -> tuple[Record, Record]:
    runs = {0: [run_of(spec, 0.5)] * 3, 1: [run_of(spec, 1.0)] * 3}
    records = [record_of(spec, runs[0]), record_of(spec, runs[1], 1, hardware_kind="gpu", **gpu)]
    first, second = with_ratios(records, {record.id: runs[at] for at, record in enumerate(records)})
    return first, second


def test_ratio_of_comparable_sides_is_a_number(spec: BenchFile) -> None:
    first, second = compared(spec, hardware=replace(HARDWARE, type="p5.4xlarge"))
    [of_first], [of_second] = first.comparable, second.comparable
    assert (of_first.comparable, of_first.against) == (True, "lm-gpu")
    assert of_first.ratios["tokens_per_second"].value == pytest.approx(2)
    assert of_second.ratios["tokens_per_second"].value == pytest.approx(0.5)
    assert of_first.ratios["usd_per_million_tokens_paid"].value == pytest.approx(0.5)
    assert read_record(record_text(first)) == first


def test_price_basis_prevents_only_the_ratio_of_paid_costs(spec: BenchFile) -> None:
    hardware = replace(HARDWARE, type="p5.4xlarge", purchase="capacity-block")
    [comparison] = compared(spec, hardware=hardware)[0].comparable
    why = "not comparable: price basis (on-demand against capacity-block)"
    assert comparison.ratios["usd_per_million_tokens_paid"].why_null == why
    assert comparison.ratios["usd_per_million_tokens_list"].value == pytest.approx(0.5)


def test_ratio_of_incomparable_sides_is_never_a_number(spec: BenchFile) -> None:
    sides = (spec.sides[0], replace(spec.sides[1], tuned=None))
    [comparison] = compared(replace(spec, sides=sides), hardware=replace(HARDWARE, type="p5.4xlarge"))[0].comparable
    assert comparison.verdict == "not comparable: tuned (not stated by lm-gpu)"
    assert {ratio.value for ratio in comparison.ratios.values()} == {None}


AT = datetime(2026, 11, 24, 12, tzinfo=UTC)


def test_restart_after_a_lost_node_is_split_into_its_parts(spec: BenchFile) -> None:
    node = NodeProgress(node=0, instance_id="i-0", state="ended", at=None, phases={"source": 4.0, "first_step": 6.0})
    lost = Outcome(result="node-lost", reason="i-1 ended", at=AT + timedelta(seconds=100))
    first = Attempt(number=1, started=AT, instance_ids=(), resume_from=None, nodes=(node,), outcome=lost)
    second = replace(
        first,
        number=2,
        started=AT + timedelta(seconds=400),
        resume_from="step-5",
        checkpoint_at=AT + timedelta(seconds=80),
        outcome=Outcome(result="succeeded", reason=""),
    )
    state = JobState(job=JOB, attempts=(first, second), outcome=second.outcome)
    job = RecoveredJob(state=state, gone_at=AT + timedelta(seconds=95), repeated=2.5)

    record = record_of(spec, [run_of(spec, 0.5)] * 3, recovered=job)
    assert {name: metric.value for name, metric in record.metrics.items() if name.startswith("recovery_")} == {
        "recovery_seconds": 315,
        "recovery_lost_seconds": 2.5,
        "recovery_detected_seconds": 5,
        "recovery_waited_seconds": 300,
        "recovery_begun_seconds": 10,
    }
    unknown = record_of(spec, [run_of(spec, 0.5)] * 3, recovered=replace(job, repeated=None))
    lost = unknown.metrics["recovery_lost_seconds"]
    assert (lost.value, lost.why_null) == (
        None,
        "an attempt has no progress lines with seconds=, so the repeated work is unknown",
    )
    assert record.metrics["recovery_seconds"].why_null == "too few for an interval: 1 of at least 3 restarts"
    without = record_of(spec, [run_of(spec, 0.5)] * 3).metrics["recovery_seconds"]
    assert without.why_null == "no job that lost a node was measured"


def served(spec: BenchFile, tokens: float) -> MeasuredRun:
    metrics = {
        "output_tokens_per_second": Metric(value=tokens, unit="tokens/s", origin="imported", source="vllm"),
        "requests_per_second": Metric(value=tokens / 100, unit="requests/s", origin="imported", source="vllm"),
        "good_requests_per_second": Metric(value=1.0, unit="requests/s", origin="imported", source="vllm"),
        "request_seconds_p99": Metric(value=None, unit="s", why_null="p99 of 9 samples"),
    }
    files = tuple(
        Imported(tool="vllm", metrics=metrics, warnings=("1 failed",)).with_prefix(name) for name in ("c1", "c8")
    )
    return measured_run(ended(), (), spec, 1, files)


def test_results_of_other_tools_have_costs_and_ratios(spec: BenchFile) -> None:
    runs = {0: [served(spec, 1000)] * 3, 1: [served(spec, 500)] * 3}
    records = [
        record_of(spec, runs[0]),
        record_of(spec, runs[1], 1, hardware_kind="gpu", hardware=replace(HARDWARE, type="p5.4xlarge")),
    ]
    first, _ = with_ratios(records, {record.id: runs[at] for at, record in enumerate(records)})
    assert first.metrics["c8.usd_per_million_output_tokens_paid"].value == pytest.approx(1)
    requests = first.metrics["c8.usd_per_million_requests_paid"]
    assert (requests.value, requests.unit) == (pytest.approx(100), "USD per million requests")
    assert (requests.method or "").startswith("USD per hour / 3600 / requests per second")
    assert not [name for name in first.metrics if "good_requests_paid" in name]
    assert "tokens_per_second" not in first.metrics
    assert first.metrics["c1.request_seconds_p99"].why_null == "p99 of 9 samples"
    assert first.metrics["c1.output_tokens_per_second"].origin == "imported"
    [compared] = first.comparable
    assert compared.ratios["c1.output_tokens_per_second"].value == pytest.approx(2)
    assert compared.ratios["c8.usd_per_million_output_tokens_list"].value == pytest.approx(0.5)
    assert first.warnings == ("1 failed",)


@pytest.mark.parametrize(
    ("limit", "value", "state"),
    [
        ("<= 1", 1.0, "met"),
        ("<= 1", 1.1, "not met"),
        (">= 2e3", 2000.0, "met"),
        (">=2", 1.9, "not met"),
        ("<= 1", None, "not measured"),
    ],
)
def test_gate_compares_a_metric_with_its_limit(limit: str, value: float | None, state: str) -> None:
    metric = None if value is None else Metric(value=value, unit="s", low=value, high=value, origin="measured")
    assert judged_gate("x", limit, metric).state == state


@pytest.mark.parametrize(
    ("limit", "state"),
    [
        (">= 9", "met"),
        (">= 9.5", "met, within the noise"),
        (">= 10.5", "not met"),
        ("<= 11", "met"),
        ("<= 10", "met, within the noise"),
        ("<= 9.5", "not met"),
    ],
)
def test_gate_whose_interval_contains_the_limit_is_met_within_the_noise(limit: str, state: str) -> None:
    metric = Metric(value=10.0, unit="s", low=9.0, high=11.0, level=0.95, method="x", origin="measured")
    assert judged_gate("x", limit, metric).state == state


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            ("seeds = [1, 2, 3]", "seeds = [1, 1, 2]"),
            "seeds is [1, 1, 2]; it must be a list of at least 3 different whole numbers",
        ),
        (("seeds = [1, 2, 3]", "seeds = 3"), "seeds is 3; it must be a list of at least 3"),
        (("steps = 2", ""), "steps is missing; it must be a whole number of 1 or more"),
        (('name = "lm"', 'name = "L M"'), "name is 'L M'"),
        (
            ('name = "lm"', 'name = "-lm"'),
            "name is '-lm'; use up to 40 lowercase letters, digits and hyphens, beginning",
        ),
        (('"job.toml"', '"."'), "sides.trainium.job is '.'; it must be a file that exists"),
        (('"job.toml"', '"none.toml"'), "sides.trainium.job is 'none.toml'; it must be a file that exists"),
        (('job = "job.toml"\ntuned = true\n\n[sides.gpu]', "[sides.gpu]"), "sides.trainium.job is missing"),
        (('tokens_per_second = ">= 10"', "tokens_per_second = 10"), "gates.tokens_per_second is 10; use a limit"),
        (("seq = 128", 'seq = "128"'), "workload.seq is '128'; it must be a whole number"),
        (("seq = 128", "sequence = 128"), "workload.sequence is not a known key; allowed: model"),
        (("[gates]", "[fidelity]\nreference = 'tpu'\n[gates]"), "fidelity.reference is 'tpu'; it must be a side"),
        (("[gates]", "[fidelity]\nscores = {}\n[gates]"), "fidelity.reference is missing"),
        (
            ("[gates]", "[fidelity]\nreference = 'gpu'\nscores = {acc = 0}\n[gates]"),
            "fidelity.scores.acc is 0; it must be a number above 0",
        ),
        (("tuned = true", "tuned = 1"), "sides.trainium.tuned is 1; it must be true or false"),
        (('name = "lm"', "name = "), "the file is not TOML"),
    ],
)
def test_mistake_in_the_file_is_named(tmp_path: Path, change: tuple[str, str], problem: str) -> None:
    (tmp_path / "job.toml").write_text("")
    with pytest.raises(TomlFileError) as raised:
        read_bench_file(FILE.replace(*change, 1).encode(), tmp_path / "bench.toml")
    assert any(text.startswith(problem) for text in raised.value.problems), raised.value.problems


def test_seed_is_put_into_arguments_command_and_environment() -> None:
    job_file = {"arguments": ["--seed", "{seed}"], "command": "train --seed {seed}", "environment": {"SEED": "{seed}"}}
    others = {"name": "{seed}", "retries": 0}
    assert seeded({**job_file, **others}, 7) == {
        "arguments": ["--seed", "7"],
        "command": "train --seed 7",
        "environment": {"SEED": "7"},
        **others,
    }

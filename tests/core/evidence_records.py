"""Three records to vary: from a Trainium cluster, a GPU and the lab."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.core.job_bucket import JOB
from trainium_core.evidence.bench import MeasuredRun, SidePrices, measured_run, side_record
from trainium_core.evidence.bench_file import BenchFile, BenchSide
from trainium_core.evidence.gates import Gate, judged_gate
from trainium_core.evidence.metric import MEASURED, Metric
from trainium_core.evidence.record import GPU, LAB, BenchWorkload, Hardware, Input, Record, RecordedRun, Software, Tool
from trainium_core.evidence.steps import training_steps, warmup_rule
from trainium_core.jobs.follow import LogLine
from trainium_core.jobs.progress import JobState
from trainium_wire.job import Outcome
from trainium_wire.job_progress import Attempt, NodeProgress

WORKLOAD = BenchWorkload(
    name="lm",
    model="examples/lm",
    dataset_sha256="0" * 64,
    seq=128,
    global_batch=64,
    precision="bf16",
    optimizer="AdamW",
    steps=100,
    warmup=warmup_rule(1),
    tuned=True,
)
TRAINIUM_SIDE = Record(
    kind="bench",
    id="lm-trn2",
    made="2026-11-24T12:00:00Z",
    tool=Tool(version="0.1.0"),
    side="trainium",
    workload=WORKLOAD,
    hardware=Hardware(type="trn2.3xlarge", nodes=1, accelerators=1, used=1, purchase="on-demand"),
    software=Software(stack="native"),
    runs=tuple(
        RecordedRun(
            job=f"lm-{seed}", seed=seed, phases={"compile_cold": 30.0, "data": None}, loss=((1.0, 2.5), (2.0, 2.25))
        )
        for seed in (1, 2, 3)
    ),
    metrics={
        "tokens_per_second": Metric(
            value=10.0, unit="tokens/s", n=3, low=9.0, high=11.0, level=0.95, method="bootstrap", origin=MEASURED
        )
    },
    gates=(Gate(name="tokens_per_second", limit=">= 5", value=10.0, state="met"),),
    inputs=(Input(path="bench.toml", sha256="1" * 64, bytes=12),),
)


def _gpu_record() -> Record:
    """The record that `trn bench` makes of three jobs on a GPU, but with the metrics and gates of the other side."""
    source = Input(path="bench.toml", sha256="1" * 64, bytes=12)
    side = BenchSide(name="p5", job=Path("gpu.toml"), tuned=True)
    file = BenchFile(
        name="lm",
        steps=100,
        warmup_steps=1,
        seeds=(1, 2, 3),
        workload=WORKLOAD,
        sides=(side,),
        gates={"tokens_per_second": ">= 5"},
        fidelity=None,
        source=source,
    )
    record = side_record(
        file,
        side,
        [_gpu_run(file, seed, rate) for seed, rate in ((1, 9.6), (2, 10.0), (3, 10.4))],
        hardware_kind=GPU,
        hardware=replace(TRAINIUM_SIDE.hardware, type="p5.4xlarge"),
        software=Software(),
        prices=SidePrices(paid=None, list=None, source="", date="", why_unknown="no price"),
        command="python train.py",
        made=TRAINIUM_SIDE.made,
        tool=TRAINIUM_SIDE.tool,
    )
    return replace(record, metrics=TRAINIUM_SIDE.metrics, gates=TRAINIUM_SIDE.gates)


def _gpu_run(file: BenchFile, seed: int, rate: float) -> MeasuredRun:
    node = NodeProgress(node=0, instance_id="i-0", state="ended", at=None, phases={"first_step": 3.0})
    attempt = Attempt(number=1, started=None, instance_ids=(), resume_from=None, nodes=(node,))
    outcome = Outcome(result="succeeded", reason="")
    texts = [f"TRN step={step} loss={3 / step} tokens=8 seconds={8 / rate}" for step in range(1, 102)]
    lines = [LogLine(attempt=1, rank=0, text=text) for text in texts]
    state = JobState(job=replace(JOB, id=f"gpu-{seed}"), attempts=(attempt,), outcome=outcome)
    return measured_run(state, training_steps(lines), file, seed)


GPU_SIDE = _gpu_record()
LAB_SIDE = replace(
    TRAINIUM_SIDE,
    id="lm-lab",
    side=LAB,
    hardware=replace(TRAINIUM_SIDE.hardware, type="lab:trn2.3xlarge", accelerators=0),
)


def with_workload(record: Record, **changes: Any) -> Record:
    return replace(record, workload=replace(record.workload, **changes))


def with_hardware(record: Record, **changes: Any) -> Record:
    return replace(record, hardware=replace(record.hardware, **changes))


def with_metric(record: Record, **changes: Any) -> Record:
    """The record with a changed metric, and with its gates judged again."""
    [(name, metric)] = record.metrics.items()
    metric = replace(metric, **changes)
    gates = tuple(judged_gate(gate.name, gate.limit, metric) for gate in record.gates)
    return replace(record, metrics={name: metric}, gates=gates)

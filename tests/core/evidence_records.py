"""Three records to vary: from a Trainium cluster, a GPU and the lab."""

from dataclasses import replace
from typing import Any

from trainium_core.evidence.gates import Gate, judged_gate
from trainium_core.evidence.metric import MEASURED, Metric
from trainium_core.evidence.record import GPU, LAB, BenchWorkload, Hardware, Input, Record, RecordedRun, Tool

WORKLOAD = BenchWorkload(
    name="lm",
    model="examples/lm",
    dataset_sha256="0" * 64,
    seq=128,
    global_batch=64,
    precision="bf16",
    optimizer="AdamW",
    steps=100,
    warmup="graph events",
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
GPU_SIDE = replace(TRAINIUM_SIDE, id="lm-p5", side=GPU, hardware=replace(TRAINIUM_SIDE.hardware, type="p5.4xlarge"))
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

"""The jobs of `trn bench` in its tests, which nodes run at once."""

from collections.abc import Container
from dataclasses import replace
from pathlib import Path

from tests.cli.jobs.cluster_with_jobs import Cluster
from trainium_core.evidence.record import Record, read_record
from trainium_wire.job import Job

FILE = """
name = "lm"
steps = 3
seeds = [11, 12, 13]

[workload]
model = "lm"

[sides.trainium]
job = "job.toml"
tuned = true

[gates]
tokens_per_second = ">= 100"
"""
JOB_FILE = 'script = "train.py"\nname = "lm"\narguments = ["--seed", "{seed}"]\n'


def work(
    cluster: Cluster,
    started: list[Job],
    result: str = "succeeded",
    seconds: str = " seconds=0.5",
    losses: Container[int] = range(1, 6),
    diverges: bool = False,
) -> None:
    """Run the current job: five steps, some of them with a loss, which is not finite if the job diverges."""
    current = cluster.jobs.current()
    assert current is not None
    # Called several times for each job.
    if any(job.id == current.job.id for job in started):
        return
    started.append(current.job)
    writes = replace(cluster.job_nodes, job=current.job)
    writes.start()
    writes.node(0, "running", phases={"first_step": 20, "running": 40}, graphs={"compiled": 2})
    writes.node(1, "running")
    shown = {step: f" loss={'nan' if diverges else 3 / step}" if step in losses else "" for step in range(1, 6)}
    lines = [f"[rank 0] TRN step={step}{loss} tokens=100{seconds}" for step, loss in shown.items()]
    writes.log(1, "\n".join(["[rank 0] Compiler status PASS", *lines]) + "\n")
    writes.put("outputs/vllm.json", (Path(__file__).parents[2] / "core/evidence_imports/vllm_bench.json").read_text())
    writes.end_attempt(result, reason="a reason")
    writes.end(result, reason="a reason")


def record() -> Record:
    return read_record(Path("evidence/lm-trainium.json").read_bytes())

"""`trn bench` on a deployed cluster: the runs, and a node that is lost and replaced during a job."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.constructs.synth import cluster_template
from tests.deploy.account import Account
from tests.deploy.command import run_trn
from tests.deploy.permitted import as_user, execution_policies
from trainium_core.evidence.record import read_record
from trainium_local.server import Settings

PLAN: Mapping[str, Any] = {"instance_type": "trn1.2xlarge", "region": "us-west-2", "nodes": 1}
OPTIONS = tuple(word for name, value in PLAN.items() for word in ("-c", f"trn:{name}={value}"))
BENCH = """name = "steps"
steps = 20
seeds = [1, 2, 3]

[workload]
model = "none"

[sides.one]
job = "job.toml"
recovery = true
"""
STEPS = "for n in $(seq $last); do echo TRN step=$n tokens=8 seconds=0.1; sleep 0.15; done"
JOB = f"""name = "steps"
command = "echo >>RUNS; last=44; [ $(wc -l <RUNS) = 4 ] && last=9999; {STEPS}"
"""
"""The fourth run, whose node is terminated, does not end before that."""


def test_recovery_from_a_terminated_node_is_measured(start_account: Callable[..., Account], tmp_path: Path) -> None:
    account = start_account(Settings(iam="enforced"), execution_policies)
    account.deploy(cluster_template(**PLAN))
    (tmp_path / "bench.toml").write_text(BENCH)
    (tmp_path / "job.toml").write_text(JOB.replace("RUNS", str(tmp_path / "runs")))
    file, evidence = str(tmp_path / "bench.toml"), tmp_path / "evidence"
    ran = run_trn(as_user(account, "operate"), "bench", "--yes", *OPTIONS, "--output", str(evidence), file)
    assert ran.code == 0, ran.printed
    record = read_record((evidence / "steps-one.json").read_bytes())
    metrics = {name: metric.value for name, metric in record.metrics.items() if name.startswith("recovery_")}
    assert None not in metrics.values(), metrics
    # The job has no checkpoint, so its restart repeats every step: at least the 11 that are half of warm-up and steps.
    assert (metrics["recovery_lost_seconds"] or 0) >= 1.1 - 1e-9, metrics
    parts = [metrics[f"recovery_{part}_seconds"] or 0 for part in ("detected", "waited", "begun")]
    assert metrics["recovery_seconds"] == sum(parts)
    assert len(record.runs) == 3

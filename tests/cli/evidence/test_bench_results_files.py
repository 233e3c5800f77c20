"""Results files that `trn bench` writes, also of imported numbers, and those that it never replaces."""

from pathlib import Path

import pytest

from tests.cli.evidence.bench_jobs import FILE, JOB_FILE, record, work
from tests.cli.jobs.cluster_with_jobs import TWO, Cluster
from tests.cli.running import run
from tests.core.evidence_records import TRAINIUM_SIDE
from tests.core.job_bucket import BUCKET
from trainium_cli.exit_codes import ExitCode
from trainium_core.evidence.record import read_record, record_text
from trainium_wire.job import Job


def test_import_writes_a_record_and_starts_nothing(jobs: list[Job]) -> None:
    hardware = '[hardware]\ntype = "dgx-h100"\n'
    metric = '[metrics.tokens_per_second]\nvalue = 5.0\nunit = "tokens/s"\nsource = "a log"\ndate = 2026-10-20\n'
    Path("gpu.toml").write_text(f'id = "lm-h100"\nside = "gpu"\n[workload]\nname = "lm"\n{hardware}{metric}')
    ended = run("bench", "--import", "gpu.toml")
    assert ended.exit_code == ExitCode.OK, ended.output
    assert read_record(Path("evidence/lm-h100.json").read_bytes()).metrics["tokens_per_second"].value == 5
    assert jobs == []
    Path("evidence/lm-trn2.json").write_text(record_text(TRAINIUM_SIDE))
    shown = run("bench", "--import", "gpu.toml").output
    assert "tokens_per_second, lm-trn2 / lm-h100: not comparable: model (not stated)" in " ".join(shown.split())
    Path("gpu.toml").write_text(metric)
    assert run("bench", "--import", "gpu.toml").exit_code == ExitCode.BAD_INPUT


def test_imported_losses_are_the_reference_of_a_side(jobs: list[Job]) -> None:
    runs = "".join(
        f"[[runs]]\nseed = {seed}\nloss = [[{{}}, {seed / 8}], [2, 1.5], [4, 0.75]]\n" for seed in (11, 12, 13)
    )
    gpu = 'id = "h100"\nside = "gpu"\n[workload]\nname = "lm"\n[hardware]\ntype = "dgx-h100"\n'
    Path("gpu.toml").write_text(gpu + runs.format(3, 3, 3))
    Path("bench.toml").write_text(FILE + '[fidelity]\nreference = "imported/h100.json"\n')
    refused = run("bench", *TWO, "bench.toml")
    assert (refused.exit_code, jobs) == (ExitCode.BAD_INPUT, [])
    assert run("bench", "--import", "gpu.toml", "--output", "imported").exit_code == ExitCode.OK
    ended = run("bench", *TWO, "bench.toml")
    assert ended.exit_code == ExitCode.NOT_READY, ended.output
    (check,) = record().fidelity
    assert (check.reference, check.state, check.compared) == ("h100", "not met", 9)
    shown = " ".join(run("report", "evidence").output.split())
    assert "h100, whose results file is missing" not in shown
    # The same numbers, imported again, are the same reference.
    run("bench", "--import", "gpu.toml", "--output", "imported")
    assert run("bench", *TWO, "bench.toml").exit_code == ExitCode.NOT_READY
    Path("gpu.toml").write_text(gpu + runs.format(1, 1, 1))
    run("bench", "--import", "gpu.toml", "--output", "imported")
    changed = run("bench", *TWO, "bench.toml")
    assert changed.exit_code == ExitCode.BAD_INPUT
    assert "bench.toml or the reference h100 was changed after the first run" in changed.stderr


MEASURED = record_text(TRAINIUM_SIDE)
IMPORT = 'id = "lm-trn2"\nside = "gpu"\n[workload]\nname = "lm"\n[hardware]\ntype = "dgx-h100"\n'


@pytest.mark.parametrize(
    ("present", "says"),
    [
        (MEASURED, "lm-trn2.json has 3 runs of `trn bench` that would be lost, such as that of lm-1."),
        ('{"tokens": 5}', "lm-trn2.json would be replaced: not a results file"),
    ],
)
def test_import_never_replaces_measured_runs_or_other_files(
    present: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("gpu.toml").write_text(IMPORT)
    file = Path("evidence/lm-trn2.json")
    file.parent.mkdir()
    file.write_text(present)
    ended = run("bench", "--import", "gpu.toml")
    assert (ended.exit_code, file.read_text()) == (ExitCode.BAD_INPUT, present)
    assert says in " ".join(ended.stderr.split())
    assert "Choose another --output" in " ".join(ended.stderr.split())


def test_results_file_of_another_bench_is_not_replaced(jobs: list[Job]) -> None:
    Path("evidence").mkdir()
    Path("evidence/lm-trainium.json").write_text(MEASURED)
    ended = run("bench", *TWO, "bench.toml")
    assert (ended.exit_code, jobs) == (ExitCode.BAD_INPUT, [])
    assert "such as that of lm-1. Choose another --output" in " ".join(ended.stderr.split())
    assert Path("evidence/lm-trainium.json").read_text() == MEASURED


def test_reference_never_replaces_measured_runs(jobs: list[Job]) -> None:
    Path("gpu.toml").write_text(IMPORT + "".join(
        f"[[runs]]\nseed = {seed}\nloss = [[2, 1.5], [3, {seed}], [4, 0.75]]\n" for seed in (11, 12, 13)
    ))  # fmt: skip
    run("bench", "--import", "gpu.toml", "--output", "imported")
    Path("evidence").mkdir()
    Path("evidence/lm-trn2.json").write_text(MEASURED)
    Path("bench.toml").write_text(FILE + '[fidelity]\nreference = "imported/lm-trn2.json"\n')
    ended = run("bench", *TWO, "bench.toml")
    assert (ended.exit_code, jobs) == (ExitCode.BAD_INPUT, [])
    assert Path("evidence/lm-trn2.json").read_text() == MEASURED


def test_run_whose_job_no_longer_exists_is_not_replaced(cluster: Cluster, jobs: list[Job]) -> None:
    assert run("bench", *TWO, "bench.toml").exit_code == ExitCode.OK
    measured = record()
    cluster.job_nodes.s3.delete_object(Bucket=BUCKET, Key=f"jobs/{jobs[1].id}/job.json")
    ended = run("bench", *TWO, "bench.toml")
    assert (ended.exit_code, len(jobs), record()) == (ExitCode.BAD_INPUT, 3, measured)
    assert f"{jobs[1].id} no longer exists" in " ".join(ended.stderr.split())


@pytest.mark.parametrize(("reference", "started"), [("imported/h100.json", 1), ("gpu", 4)])
def test_losses_that_cannot_be_compared_stop_before_the_next_job(
    reference: str, started: int, cluster: Cluster, jobs: list[Job]
) -> None:
    runs = "".join(f"[[runs]]\nseed = {seed}\nloss = [[2, 1.5], [3, {seed}], [4, 0.75]]\n" for seed in (11, 12, 13))
    Path("gpu.toml").write_text(IMPORT.replace("lm-trn2", "h100") + runs)
    run("bench", "--import", "gpu.toml", "--output", "imported")
    Path("other.toml").write_text(JOB_FILE.replace('"lm"', '"gpu"'))
    other = '[sides.gpu]\njob = "other.toml"\n' if started == 4 else ""
    Path("bench.toml").write_text(f'{FILE}{other}[fidelity]\nreference = "{reference}"\n')
    cluster.while_paused = lambda: work(cluster, jobs, losses=(1, 2, 4) if len(jobs) == started - 1 else range(1, 6))
    name = reference.removeprefix("imported/").removesuffix(".json")
    for _ in range(2):
        ended = run("bench", *TWO, "bench.toml")
        assert (ended.exit_code, len(jobs)) == (ExitCode.NOT_READY, started)
        says = f"those of {name}: the side has no loss at step 3 with seed 11. No further job was started."
        assert says in " ".join(ended.stderr.split())


def test_losses_that_are_not_finite_are_a_result_and_stop_no_job(cluster: Cluster, jobs: list[Job]) -> None:
    """A diverging script may print no more losses."""
    runs = "".join(f"[[runs]]\nseed = {seed}\nloss = [[2, 1.5], [3, {seed}], [4, 0.75]]\n" for seed in (11, 12, 13))
    Path("gpu.toml").write_text(IMPORT.replace("lm-trn2", "h100") + runs)
    run("bench", "--import", "gpu.toml", "--output", "imported")
    Path("bench.toml").write_text(f'{FILE}[fidelity]\nreference = "imported/h100.json"\n')
    cluster.while_paused = lambda: work(cluster, jobs, losses=(1, 2), diverges=True)
    ended = run("bench", *TWO, "bench.toml")
    assert (ended.exit_code, len(jobs)) == (ExitCode.NOT_READY, 3)
    assert [check.state for check in record().fidelity] == ["not met"]

"""`trn run --resume`: the job whose checkpoint is used, and the jobs that can be resumed."""

from dataclasses import replace

from tests.cli.jobs.cluster_with_jobs import TWO, Cluster
from tests.cli.running import run
from tests.core.job_bucket import JOB
from trainium_cli.exit_codes import ExitCode


def test_resume_uses_the_checkpoint_of_the_job_before_the_resumed_one(cluster: Cluster) -> None:
    assert cluster.jobs.submit(JOB, b"", over=None)
    cluster.job_nodes.put("checkpoints/step-10.json", {"world_size": 64})
    second = replace(JOB, id="second", resume_from=JOB.id)
    assert cluster.jobs.submit(second, b"", over=cluster.jobs.current())
    replace(cluster.job_nodes, job=second).end("interrupted")
    ended = run("run", *TWO, "--detach", "--resume", "second", "train.py")
    assert ended.exit_code == ExitCode.OK, ended.stderr
    assert f"continues from step-10 of {JOB.id}" in ended.stderr
    current = cluster.jobs.current()
    assert current
    assert current.job.resume_from == JOB.id


def test_resume_requires_a_complete_checkpoint(cluster: Cluster) -> None:
    assert cluster.jobs.submit(JOB, b"", over=None)
    cluster.job_nodes.end("interrupted")
    resumed = ("run", *TWO, "--detach", "--resume", JOB.id, "train.py")
    ended = run(*resumed)
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "has no complete checkpoint" in ended.stderr
    assert "allowed: none: no recent job of the cluster can be resumed" in ended.stderr
    saving = replace(JOB, id="fit-20261122-190502")
    assert cluster.jobs.submit(saving, b"", over=cluster.jobs.current())
    replace(cluster.job_nodes, job=saving).put("checkpoints/step-10.json", {})
    replace(cluster.job_nodes, job=saving).end("interrupted")
    without = replace(JOB, id="fit-20261122-190503")
    assert cluster.jobs.submit(without, b"", over=cluster.jobs.current())
    replace(cluster.job_nodes, job=without).end("interrupted")
    assert f"allowed: {saving.id}\n" in run(*resumed).stderr
    cluster.job_nodes.put("checkpoints/step-10.json", {})
    assert run(*resumed).exit_code == ExitCode.OK
    current = cluster.jobs.current()
    assert current
    assert current.job.resume_from == JOB.id

"""`trn run --on eks` without Kubernetes: what is printed, stored and refused."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.jobs.cluster_with_jobs import Cluster, cluster_with_jobs
from tests.cli.running import GOOD, run
from tests.core.aws_stubs import put_record, stack_record
from tests.core.fake_kubectl import install
from tests.core.job_bucket import BUCKET, JOB
from trainium_cli.exit_codes import ExitCode
from trainium_core.engines.eks.job_set import JOB_LABEL

SETTINGS = ("trn:nodes=2", "trn:stacks=eks", "trn:eks_cluster=prod", "trn:eks_image=image:1")
ON = (*GOOD, *(part for setting in SETTINGS for part in ("-c", setting)))
UPLOAD = ("run", *ON, "--dry-run", "--upload", "--resume", "second", "train.py")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """The bucket of EksJobsStack, with an earlier job."""
    with cluster_with_jobs(monkeypatch) as made:
        put_record(stack_record("EksJobsStack", engine="eks", bucket=BUCKET, settings={"eks_cluster": "prod"}))
        for job in (JOB, replace(JOB, id="second", resume_from=JOB.id)):
            made.jobs.add(job, b"", {})
        yield made


def test_upload_resumes_from_the_job_that_saved_a_checkpoint(cluster: Cluster) -> None:
    cluster.job_nodes.put("checkpoints/step-10.json", {"world_size": 64})
    shown = run(*UPLOAD)
    assert shown.exit_code == ExitCode.OK, shown.stderr
    assert shown.stdout.startswith("apiVersion: jobset.x-k8s.io/v1alpha2\n")
    assert f"continues from step-10 of {JOB.id}" in shown.stderr
    (job_id,) = {*cluster.jobs.job_ids()} - {JOB.id, "second"}
    stored = cluster.jobs.job(job_id)
    assert stored
    assert (stored.resume_from, bool(stored.submitted_by)) == (JOB.id, True)


def test_upload_of_a_job_without_a_checkpoint_to_resume_is_refused(cluster: Cluster) -> None:
    shown = run(*UPLOAD)
    assert shown.exit_code == ExitCode.BAD_INPUT
    assert "--resume: got 'second'" in shown.stderr
    assert "has no complete checkpoint" in shown.stderr
    assert {*cluster.jobs.job_ids()} == {JOB.id, "second"}


def test_stop_of_an_ended_job_deletes_its_waiting_job_set(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubectl = install(tmp_path / "kubectl", monkeypatch)
    kubectl.items({"kind": "JobSet", "metadata": {"name": "set", "labels": {JOB_LABEL: JOB.id}}})
    cluster.job_nodes.submit()
    cluster.job_nodes.end("node-lost")
    stopped = run("stop", *ON, JOB.id)
    assert (stopped.exit_code, stopped.stdout) == (ExitCode.OK, f"{JOB.id} has ended: node-lost.\n")
    assert any(call.startswith("delete jobset set") for call in kubectl.calls)


@pytest.mark.usefixtures("cluster")
def test_priority_without_a_queue_is_refused() -> None:
    shown = run("run", *ON, "--dry-run", "--priority", "5", "train.py")
    assert shown.exit_code == ExitCode.BAD_INPUT
    assert "--priority: got 5" in shown.stderr
    assert "add --queue NAME" in shown.stderr

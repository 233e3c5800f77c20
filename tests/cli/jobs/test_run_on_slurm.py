"""The job commands on Slurm, the batch script of a job, and the refusal of options of other engines."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.conftest import FakeLocating
from tests.cli.jobs.cluster_with_jobs import Cluster, cluster_with_jobs
from tests.cli.running import GOOD, run
from tests.core.aws_stubs import client, put_record, stack_record
from tests.core.job_bucket import BUCKET, JOB
from trainium_cli.exit_codes import ExitCode
from trainium_cli.jobs import stop_command
from trainium_core.engines.pcs import aws_jobs

QUEUES = ("-c", "trn:nodes=2", "-c", "trn:pcs_queues=trn,urgent:10")
ON = (*GOOD, "-c", "trn:stacks=pcs", *QUEUES)
BOTH = (*GOOD, "-c", "trn:stacks=cluster,pcs", *QUEUES)


def no_prices(_region: str, **_: object) -> None:
    return None


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A stack of Slurm whose login node answers."""
    queue = f"{JOB.id}|7|PENDING|Priority\n"

    class Login:
        is_on_aws = True

        def __init__(self, *_: object, **_more: object) -> None: ...

        def find(self) -> str:
            return "i-0login"

        def run(self, command: str) -> str:
            return "8\nslurm_update error: denied\n" if "sbatch" in command else queue

    monkeypatch.setattr(aws_jobs, "AwsLoginNode", Login)
    monkeypatch.setattr(aws_jobs, "AwsPrices", no_prices)
    with cluster_with_jobs(monkeypatch) as made:
        put_record(stack_record("PcsStack", engine="pcs", bucket=BUCKET))
        yield made


@pytest.mark.parametrize("name", ["slurm", "pcs"])
def test_dry_run_prints_the_batch_script(cluster: Cluster, name: str) -> None:
    shown = run("run", *BOTH, "--on", name, "--dry-run", "--queue", "urgent", "train.py", "--", "--epochs", "3")
    assert shown.exit_code == ExitCode.OK, shown.stderr
    assert shown.stdout.startswith("#!/bin/bash\n#SBATCH --job-name=train-")
    assert "#SBATCH --partition=urgent\n" in shown.stdout
    assert "train.py --epochs 3" in shown.stdout
    assert cluster.jobs.job_ids() == []


def test_job_is_submitted_from_a_job_file_with_queue_and_priority(cluster: Cluster) -> None:
    Path("job.toml").write_text('script = "train.py"\non = "slurm"\nqueue = "urgent"\npriority = 5\n')
    started = run("run", *ON, "--detach", "job.toml")
    assert started.exit_code == ExitCode.OK, started.stderr
    assert "urgent, priority 5" in started.stdout
    (job_id,) = cluster.jobs.job_ids()
    assert f"Submitted {job_id}." in started.stderr
    assert "without its priority: slurm_update error: denied" in started.stderr


@pytest.mark.parametrize(("typed", "stops"), [(None, False), ("n\n", False), ("y\n", True)])
def test_job_without_a_name_is_stopped_only_after_confirmation(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, typed: str | None, stops: bool
) -> None:
    assert cluster.jobs.submit(JOB, b"", over=None)
    monkeypatch.setattr(stop_command, "_is_interactive", lambda: typed is not None)
    ended = run("stop", *ON, stdin=typed)
    assert JOB.id in ended.stderr
    assert (ended.exit_code == ExitCode.OK) == stops
    state = cluster.jobs.state(JOB.id)
    assert state is not None
    assert state.is_over == stops


def test_queued_job_is_listed_and_stopped(cluster: Cluster) -> None:
    cluster.job_nodes.submit()
    listed = json.loads(run("jobs", *ON, "--json").stdout)
    assert [(one["engine"], one["status"], one["job"]["id"]) for one in listed] == [("pcs", "queued", JOB.id)]
    stopped = run("stop", *ON, JOB.id)
    assert f"{JOB.id} has ended: stopped." in stopped.stdout


def test_jobs_of_a_stack_with_another_name_are_found(cluster: Cluster, clusters: FakeLocating) -> None:
    usual = stack_record("PcsStack", engine="pcs", bucket=BUCKET)
    client("ssm").delete_parameter(Name=usual.name)
    assert "PcsStack does not exist" in run("jobs", *ON).stderr
    clusters.recorded = [replace(usual, stack="Research")]
    put_record(*clusters.recorded)
    cluster.job_nodes.submit()
    assert f"{JOB.id}  queued" in run("jobs", *ON).stdout


def test_job_is_found_if_only_one_of_two_engines_is_deployed(cluster: Cluster) -> None:
    cluster.nodes = None
    cluster.job_nodes.submit()
    assert run("jobs", *BOTH, JOB.id).exit_code == ExitCode.OK
    missing = run("jobs", *BOTH, "train-20260101-000000")
    assert (missing.exit_code, "does not exist" in missing.stderr) == (ExitCode.NOT_READY, True)


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("on", "options", "message"),
    [
        (ON, ["--wake"], "Slurm starts nodes for a job"),
        (ON, ["--warm-pool-minutes", "5"], "trn:pcs_idle_minutes"),
        (ON, ["--queue", "other"], "--queue: got 'other'"),
        (GOOD, ["--queue", "trn"], "--queue: got 'trn'"),
        (GOOD, ["--priority", "5"], "--priority: got '5'"),
        (GOOD, ["--on", "slurm"], "--on: got 'slurm'"),
        (GOOD, ["--on", "slurm"], "add pcs to trn:stacks"),
    ],
)
def test_option_that_an_engine_lacks_is_refused_by_name(on: tuple[str, ...], options: list[str], message: str) -> None:
    ended = run("run", *on, "--yes", *options, "train.py")
    assert ended.exit_code == ExitCode.BAD_INPUT, ended.stderr
    assert message in ended.stderr

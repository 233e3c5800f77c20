"""The job commands on SageMaker, and their refusal of options of other engines."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result
from moto import mock_aws
from moto.core import DEFAULT_ACCOUNT_ID
from moto.sagemaker.models import sagemaker_backends

from tests.cli.running import GOOD, run
from tests.core.test_sagemaker_jobs import client, deploy, write
from trainium_cli.exit_codes import ExitCode
from trainium_cli.jobs import stop_command
from trainium_core.engines.sagemaker import aws_jobs, aws_training_jobs
from trainium_core.jobs import follow

ON = (*GOOD, "-c", "trn:stacks=sagemaker")


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An account in moto that has the stack of the plan, and a folder with a script."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
    monkeypatch.setattr(follow.time, "sleep", lambda _: None)
    Path("train.py").write_text("print('hello')\n")
    with mock_aws():
        deploy()
        yield


def started() -> list[str]:
    return [one["TrainingJobName"] for one in client("sagemaker").list_training_jobs()["TrainingJobSummaries"]]


def submit(*options: str) -> Result:
    return run("run", *ON, "--yes", *options, "train.py", "--", "--epochs", "3")


def test_job_is_shown_started_and_followed_to_its_result() -> None:
    ended = submit()
    assert ended.exit_code == ExitCode.OK, ended.output
    (name,) = started()
    assert "1 x ml.trn1.32xlarge in us-west-2, on demand" in ended.stdout
    assert f"Started {name}." in ended.stderr
    assert "succeeded" in ended.stdout


def test_start_and_result_say_that_no_code_runs_outside_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "code" not in submit().output
    monkeypatch.setattr(aws_training_jobs, "is_aws", lambda _: False)
    ended = submit()
    why = "requests do not go to AWS, and an emulator only records training jobs"
    assert f"No code will run: {why}.\n" in ended.stderr
    assert f"note no code ran: {why}" in " ".join(ended.stdout.split())
    assert json.loads(submit("--json").stdout)["places"]["note"] == f"no code ran: {why}"


def test_billed_job_requires_confirmation() -> None:
    ended = run("run", *ON, "train.py")
    assert (ended.exit_code, "Pass --yes to confirm" in ended.stderr) == (ExitCode.BAD_INPUT, True)
    declined = run("run", *ON, "train.py", stdin="n\n")
    assert (declined.exit_code, declined.stderr.splitlines()[-1]) == (ExitCode.NOT_READY, "Not confirmed.")
    assert started() == []
    assert "--yes" in run("run", *ON, "--json", "train.py").stderr


def test_jobs_logs_and_stop_accept_a_job_id() -> None:
    submit("--detach")
    (name,) = started()
    write(f"{name}/algo-1-1700000000", "step 1")
    listed = json.loads(run("jobs", *ON, "--json").stdout)
    assert [(one["engine"], one["job"]["id"]) for one in listed] == [("sagemaker", name)]
    assert "train.py --epochs 3" in run("jobs", *ON, name).stdout
    assert "step 1" in run("logs", *ON, name).stdout
    assert f"{name} has ended: succeeded." in run("stop", *ON).stdout
    missing = run("logs", *ON, "trn-pilot--other")
    assert missing.exit_code == ExitCode.NOT_READY
    assert "Job trn-pilot--other does not exist" in missing.stderr


@pytest.mark.parametrize(("typed", "stops"), [(None, False), ("n\n", False), ("y\n", True)])
def test_job_without_a_name_is_stopped_only_after_confirmation(
    monkeypatch: pytest.MonkeyPatch, typed: str | None, stops: bool
) -> None:
    submit("--detach")
    (name,) = started()
    training = sagemaker_backends[DEFAULT_ACCOUNT_ID]["us-west-2"].training_jobs[name]
    training.training_job_status = "InProgress"
    ended_jobs: list[str] = []

    def stop(_: object, job_id: str) -> None:
        ended_jobs.append(job_id)
        training.training_job_status = "Stopped"

    monkeypatch.setattr(aws_jobs.SageMakerJobs, "stop", stop)
    monkeypatch.setattr(stop_command, "_is_interactive", lambda: typed is not None)
    ended = run("stop", *ON, stdin=typed)
    assert name in ended.stderr
    assert (ended.exit_code == ExitCode.OK, ended_jobs == [name]) == (stops, stops)


def test_dry_run_prints_request_and_uploads_only_with_upload() -> None:
    request = json.loads(run("run", *ON, "--dry-run", "train.py").stdout)
    assert request["AlgorithmSpecification"]["ContainerEntrypoint"][-1] == "train.py"
    assert "Contents" not in client("s3").list_objects_v2(Bucket="trn-bucket")
    run("run", *ON, "--dry-run", "--upload", "train.py")
    assert client("s3").list_objects_v2(Bucket="trn-bucket")["KeyCount"] == 3
    assert started() == []


@pytest.mark.parametrize(
    ("on", "options", "message"),
    [
        (ON, ["--retries", "3"], "--retries: got '3'"),
        (ON, ["--wake"], "--wake: got True"),
        (ON, ["--observe"], "--observe: got True"),
        (ON, ["--nodes", "2"], "remove it: a training job has all instances"),
        (GOOD, ["--warm-pool-minutes", "5"], "--warm-pool-minutes: got '5'"),
        (GOOD, ["--on", "sagemaker"], "add sagemaker to trn:stacks"),
    ],
)
def test_option_of_another_engine_is_refused_by_name(on: tuple[str, ...], options: list[str], message: str) -> None:
    ended = run("run", *on, "--yes", *options, "train.py")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert message in ended.stderr
    assert started() == []


def test_job_output_is_copied() -> None:
    submit("--detach")
    (name,) = started()
    client("s3").put_object(Bucket="trn-bucket", Key=f"output/{name}/output/model.tar.gz", Body=b"model")
    assert run("cp", *ON, f"{name}:outputs", "results").exit_code == ExitCode.OK
    assert Path("results/model.tar.gz").read_bytes() == b"model"

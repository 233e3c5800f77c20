"""The job commands on SageMaker, and their refusal of options of other engines."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result
from moto import mock_aws
from moto.core import DEFAULT_ACCOUNT_ID
from moto.sagemaker.models import sagemaker_backends

from tests.cli.running import GOOD, run
from tests.core.aws_stubs import client, create_queue, install_queues
from tests.core.training_jobs import deploy, write
from trainium_cli.exit_codes import ExitCode
from trainium_cli.jobs import stop_command
from trainium_core.engines.sagemaker import aws_training_jobs
from trainium_core.jobs import follow

ON = (*GOOD, "-c", "trn:stacks=sagemaker")


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An account in moto that has the stack of the plan, and a folder with a script."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
    monkeypatch.setattr(follow.time, "sleep", lambda _: None)
    Path("train.py").write_text("print('hello')\n")
    install_queues()
    with mock_aws():
        deploy()
        yield


def training_jobs() -> list[str]:
    return [one["TrainingJobName"] for one in client("sagemaker").list_training_jobs()["TrainingJobSummaries"]]


def started() -> list[str]:
    every = {"name": "JOB_NAME", "values": ["*"]}
    queues = [queue["jobQueueArn"] for queue in client("batch").describe_job_queues()["jobQueues"]]
    answers = (client("batch").list_service_jobs(jobQueue=queue, filters=[every]) for queue in queues)
    return [job["jobName"] for answer in answers for job in answer["jobSummaryList"]]


_NUMBERS = itertools.count()


def submit(*options: str) -> Result:
    # Names differ, because the IDs of jobs differ only in seconds.
    return run("run", *ON, "--yes", "--name", f"train{next(_NUMBERS)}", *options, "train.py", "--", "--epochs", "3")


def test_job_is_shown_started_and_followed_to_its_result() -> None:
    ended = submit()
    assert ended.exit_code == ExitCode.OK, ended.output
    (name,) = started()
    assert "1 x ml.trn1.32xlarge in us-west-2, on demand" in ended.stdout
    assert f"Submitted {name}." in ended.stderr
    assert "succeeded" in ended.stdout


def test_start_and_result_say_that_no_code_runs_outside_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "code" not in submit().output
    monkeypatch.setattr(aws_training_jobs, "is_aws", lambda _: False)
    ended = submit()
    why = "requests do not go to AWS, and an emulator only records training jobs"
    assert f"No code will run: {why}.\n" in ended.stderr
    assert f"note no code ran: {why}" in " ".join(ended.stdout.split())
    assert json.loads(submit("--json").stdout)["places"]["note"] == f"no code ran: {why}"


def test_job_waits_in_the_named_queue_with_its_priority() -> None:
    create_queue("team", cluster="other")
    ended = submit("--queue", "team", "--priority", "5", "--detach")
    assert ended.exit_code == ExitCode.OK, ended.output
    assert "team, priority 5" in ended.stdout
    (queue,) = client("batch").describe_job_queues(jobQueues=["team"])["jobQueues"]
    (name,) = started()
    every = {"name": "JOB_NAME", "values": [name]}
    (job,) = client("batch").list_service_jobs(jobQueue=queue["jobQueueArn"], filters=[every])["jobSummaryList"]
    assert client("batch").describe_service_job(jobId=job["jobId"])["schedulingPriority"] == 5
    assert f"{name} has ended" in run("stop", *ON, name).stdout


def test_unknown_queue_is_refused_by_the_name_of_the_option() -> None:
    ended = run("run", *ON, "--yes", "--queue", "tea", "train.py")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "--queue: got 'tea'" in ended.stderr
    assert started() == []


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
    write(f"{training_jobs()[0]}/algo-1-1700000000", "step 1")
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
    (training,) = sagemaker_backends[DEFAULT_ACCOUNT_ID]["us-west-2"].training_jobs.values()
    training.training_job_status = "InProgress"
    monkeypatch.setattr(stop_command, "_is_interactive", lambda: typed is not None)
    ended = run("stop", *ON, stdin=typed)
    assert name in ended.stderr
    assert (ended.exit_code == ExitCode.OK, training.training_job_status == "Stopped") == (stops, stops)


def test_dry_run_prints_request_and_uploads_only_with_upload() -> None:
    submitted = json.loads(run("run", *ON, "--dry-run", "train.py").stdout)
    request = json.loads(submitted["serviceRequestPayload"])
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
    key = f"output/{training_jobs()[0]}/output/model.tar.gz"
    client("s3").put_object(Bucket="trn-bucket", Key=key, Body=b"model")
    assert run("cp", *ON, f"{name}:outputs", "results").exit_code == ExitCode.OK
    assert Path("results/model.tar.gz").read_bytes() == b"model"

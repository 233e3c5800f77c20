"""`trn run --on sagemaker`: the job of a cluster as a training job, with an account and jobs in memory."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.cli.jobs.sagemaker_account import Aws, aws_in_memory
from tests.cli.running import GOOD
from trainium_cli.exit_codes import ExitCode
from trainium_cli.main import trn

__all__ = ["aws_in_memory"]


def run(*arguments: str, typed: str | None = None) -> Result:
    return CliRunner().invoke(trn, ["run", *GOOD, *arguments], prog_name="trn", input=typed)


def test_the_job_of_a_cluster_is_a_training_job_with_the_same_source_as_trn_sagemaker_run(aws: Aws) -> None:
    ended = run("--on", "sagemaker", "--yes", "--detach", "--env", "A=b", "--time-limit-minutes", "90", "train.py")
    assert ended.exit_code == ExitCode.OK, ended.output
    started = aws.request
    assert started["TrainingJobName"].startswith("trn-pilot--train-")
    assert started["Environment"]["A"] == "b"
    assert started["StoppingCondition"]["MaxRuntimeInSeconds"] == 90 * 60
    aws.jobs.started.clear()
    aws.train("--yes", "--detach")
    assert aws.request["InputDataConfig"] == started["InputDataConfig"]


def test_a_file_says_it_too_and_resumes_from_the_checkpoints_of_an_earlier_job(aws: Aws) -> None:
    Path("job.toml").write_text(
        'on = "sagemaker"\nscript = "train.py"\narguments = ["--epochs", "3"]\nretries = 0\n'
        'resume = "trn-pilot--first"\ninputs = { tokens = "s3://trn-bucket/tokens/" }\n'
    )
    ended = run("--yes", "--detach", "job.toml")
    assert ended.exit_code == ExitCode.OK, ended.output
    assert aws.request["CheckpointConfig"]["S3Uri"].endswith("/trn-pilot--first")
    assert "tokens" in {channel["ChannelName"] for channel in aws.request["InputDataConfig"]}


def test_what_sagemaker_has_nothing_for_is_refused_at_once_with_what_to_do_instead(aws: Aws) -> None:
    given = ("--nodes", "3", "--setup", "make", "--retries", "2", "--hang-minutes", "5", "--input", "words=train.py")
    ended = run("--on", "sagemaker", "--yes", *given, "train.py")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "The training job has 5 problems" in ended.stderr
    for message in ("--nodes", "requirements.txt", "--resume JOB", "--hang-minutes", "words = train.py"):
        assert message in ended.stderr
    assert aws.jobs.started == []


def test_nothing_is_started_without_a_yes(aws: Aws) -> None:
    assert run("--on", "sagemaker", "train.py", typed="n\n").exit_code == ExitCode.NOT_READY
    assert aws.jobs.started == []
    assert run("--on", "sagemaker", "--json", "train.py").exit_code == ExitCode.BAD_INPUT


def test_a_check_without_an_answer_is_suppressed_by_its_name(aws: Aws) -> None:
    aws.account.unavailable = {"role"}
    assert "--suppress role" in run("--on", "sagemaker", "--yes", "train.py").stderr
    assert run("--on", "sagemaker", "--yes", "--detach", "--suppress", "role", "train.py").exit_code == ExitCode.OK
    assert run("--suppress", "role", "train.py").exit_code == ExitCode.BAD_INPUT


@pytest.mark.parametrize("option", ["--wake", "--outputs=there"])
@pytest.mark.usefixtures("aws")
def test_options_of_the_cluster_alone_are_refused(option: str) -> None:
    assert "are of the cluster" in run("--on", "sagemaker", option, "train.py").stderr


def test_a_dry_run_prints_the_request_and_starts_nothing(aws: Aws) -> None:
    shown = json.loads(run("--on", "sagemaker", "--dry-run", "train.py").stdout)
    assert shown["TrainingJobName"].startswith("trn-pilot--train-")
    assert aws.jobs.started == []

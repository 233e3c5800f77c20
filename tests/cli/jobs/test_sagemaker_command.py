"""`trn sagemaker run`: what is shown and started, what Ctrl-C does, the exit codes. tests/core has the rules."""

import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.cli.jobs.sagemaker_account import NAME, Aws, aws_in_memory
from tests.cli.running import GOOD, run_program
from tests.core.fake_jobs import COMPLETED, FAILED, NO_ANSWER, STARTING, STOPPED, TRAINING, line
from tests.core.fake_sagemaker_account import OUTPUTS
from tests.core.jobs import ROLE
from tests.layout.repository import ROOT, python_files
from trainium_cli.exit_codes import ExitCode
from trainium_cli.jobs.sagemaker_command import COMMANDS
from trainium_cli.main import trn
from trainium_core.engines.sagemaker.job_checks.preflight import JOB_CHECKS
from trainium_core.engines.sagemaker.jobs import follow
from trainium_core.engines.sagemaker.jobs.images import image_tags
from trainium_core.engines.sagemaker.jobs.training_jobs import JobUnknownError

__all__ = ["aws_in_memory"]

OWN = ("--role", ROLE, "--bucket", "own-bucket")

OWN_IMAGE = "123456789012.dkr.ecr.us-west-2.amazonaws.com/team/training:1.0"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_that_begins_with_its_summary(name: str) -> None:
    shown = CliRunner().invoke(trn, ["sagemaker", name, "--help"], prog_name="trn")
    assert shown.exit_code == 0
    assert COMMANDS[name].summary in shown.output


def test_a_dry_run_prints_the_request_and_starts_nothing(aws: Aws) -> None:
    ended = aws.train("--dry-run")
    assert ended.exit_code == ExitCode.OK
    request = json.loads(ended.stdout)
    assert request["TrainingJobName"] == NAME
    assert request["RoleArn"] == OUTPUTS["RoleArn"]
    assert request["CheckpointConfig"]["S3Uri"] == f"{OUTPUTS['CheckpointUrl']}/{NAME}"
    assert (aws.jobs.uploaded, aws.jobs.started) == ({}, [])


def test_a_request_for_others_comes_with_its_source_uploaded(aws: Aws) -> None:
    ended = aws.train("--dry-run", "--upload")
    assert ended.exit_code == ExitCode.OK
    source = json.loads(ended.stdout)["InputDataConfig"][0]["DataSource"]["S3DataSource"]["S3Uri"]
    assert list(aws.jobs.uploaded) == [source]
    assert aws.jobs.started == []


def test_to_upload_alone_is_no_way_to_start_a_job(aws: Aws) -> None:
    assert aws.train("--upload", "--yes").exit_code == ExitCode.BAD_INPUT
    assert aws.jobs.uploaded == {}


def test_what_is_neither_a_url_nor_a_job_holds_no_checkpoints(aws: Aws) -> None:
    ended = aws.train("--dry-run", "--checkpoints", "s3:/bucket/x")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "--checkpoints: got 's3:/bucket/x'" in ended.stderr


def test_what_is_started_is_what_the_dry_run_printed(aws: Aws) -> None:
    printed = json.loads(aws.train("--dry-run").stdout)
    assert aws.train("--yes").exit_code == ExitCode.OK
    assert aws.request == printed


def test_a_dry_run_with_role_and_bucket_asks_no_account(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    ended = run_program(
        "sagemaker", "run", str(tmp_path / "train.py"), *GOOD, *OWN, "--dry-run", AWS_ENDPOINT_URL="http://127.0.0.1:9"
    )
    assert ended.returncode == ExitCode.OK, ended.stderr
    assert json.loads(ended.stdout)["OutputDataConfig"] == {"S3OutputPath": "s3://own-bucket/output"}


def test_what_follows_the_dashes_is_given_to_the_script(aws: Aws) -> None:
    arguments = ["sagemaker", "run", "train.py", "--yes", *GOOD, "--", "--epochs", "3", "--yes"]
    assert CliRunner().invoke(trn, arguments, prog_name="trn").exit_code == ExitCode.OK
    assert aws.request["AlgorithmSpecification"]["ContainerArguments"] == ["--epochs", "3", "--yes"]


@pytest.mark.parametrize(
    ("options", "holds"),
    [
        (("--spot",), lambda r: r["EnableManagedSpotTraining"] and r["StoppingCondition"]["MaxWaitTimeInSeconds"]),
        (
            ("--image", image_tags()[1]),
            lambda r: r["AlgorithmSpecification"]["TrainingImage"].endswith(image_tags()[1]),
        ),
        (("--image", OWN_IMAGE), lambda r: r["AlgorithmSpecification"]["TrainingImage"] == OWN_IMAGE),
        (("--max-hours", "2"), lambda r: r["StoppingCondition"]["MaxRuntimeInSeconds"] == 7200),
        (("-c", "trn:sagemaker_budget_hours=3"), lambda r: r["StoppingCondition"]["MaxRuntimeInSeconds"] == 10800),
        (("--warm-pool-minutes", "10"), lambda r: r["ResourceConfig"]["KeepAlivePeriodInSeconds"] == 600),
        (("--hyperparameter", "lr=0.1"), lambda r: r["HyperParameters"] == {"lr": "0.1"}),
        (("--env", "A=b=c"), lambda r: r["Environment"]["A"] == "b=c"),
        (("--input", "train=s3://data/set"), lambda r: r["InputDataConfig"][1]["ChannelName"] == "train"),
        (("--no-checkpoints",), lambda r: "CheckpointConfig" not in r),
        (("--checkpoints", "s3://own/x"), lambda r: r["CheckpointConfig"]["S3Uri"] == "s3://own/x"),
        (("--checkpoints", "trn-pilot--old"), lambda r: r["CheckpointConfig"]["S3Uri"].endswith("/trn-pilot--old")),
        (("--subnet", "subnet-1", "--security-group", "sg-1"), lambda r: r["VpcConfig"]["Subnets"] == ["subnet-1"]),
        (("--role", ROLE.replace("trn-", "own-")), lambda r: r["RoleArn"].endswith("own-training")),
        (("--bucket", "mine"), lambda r: r["OutputDataConfig"]["S3OutputPath"] == "s3://mine/output"),
        (("-c", "trn:nodes=3"), lambda r: r["ResourceConfig"]["InstanceCount"] == 3),
        (
            ("-c", f"trn:sagemaker_image={OWN_IMAGE}"),
            lambda r: r["AlgorithmSpecification"]["TrainingImage"] == OWN_IMAGE,
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_each_option_reaches_the_request(aws: Aws, options: tuple[str, ...], holds: Callable[[Any], Any]) -> None:
    ended = aws.train("--dry-run", *options)
    assert ended.exit_code == ExitCode.OK, ended.stderr
    assert holds(json.loads(ended.stdout))


def test_the_key_of_the_stack_is_the_jobs(aws: Aws) -> None:
    key = "arn:aws:kms:us-west-2:123456789012:key/01234567-89ab-cdef-0123-456789abcdef"
    aws.account.outputs = {**OUTPUTS, "KmsKeyArn": key}
    assert json.loads(aws.train("--dry-run").stdout)["OutputDataConfig"]["KmsKeyId"] == key
    assert "KmsKeyId" not in json.loads(aws.train("--dry-run", "--bucket", "mine").stdout)["OutputDataConfig"]


def test_the_network_of_the_stack_is_the_jobs(aws: Aws) -> None:
    aws.account.outputs = {**OUTPUTS, "SubnetIds": "subnet-1", "SecurityGroupIds": "sg-1"}
    request = json.loads(aws.train("--dry-run").stdout)
    assert request["VpcConfig"] == {"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--spot", "--no-checkpoints"), "--checkpoints: got nothing"),
        (("--checkpoints", "trn-pilot--old", "--no-checkpoints"), "nothing with --no-checkpoints"),
        (("-c", "trn:instance_type=trn2u.48xlarge", "-c", "trn:region=ap-south-2"), "no ml.trn2u.48xlarge"),
        (("-c", "trn:nodes=zero"), "trn:nodes: got 'zero'"),
        (("--env", "A B=c"), "CreateTrainingJob.Environment (key)"),
        (("--hyperparameter", "lr"), "'lr' is not NAME=VALUE"),
        (("--suppress", "rol"), "nearest: role"),
        (("--source", "nowhere"), "--source"),
        (("--image", "bogus"), "--image: got 'bogus'"),
    ],
)
def test_a_mistake_ends_before_the_prompt_for_money(aws: Aws, options: tuple[str, ...], says: str) -> None:
    arguments = ["sagemaker", "run", "train.py", "--yes", *GOOD, *options]
    ended = CliRunner().invoke(trn, arguments, prog_name="trn")
    assert (ended.exit_code, aws.jobs.started) == (ExitCode.BAD_INPUT, [])
    assert says in ended.stderr


def test_a_mistake_is_reported_as_json_too(aws: Aws) -> None:
    ended = aws.train("--spot", "--no-checkpoints", "--json", "--yes")
    assert [problem["key"] for problem in json.loads(ended.stdout)["problems"]] == ["--checkpoints"]


def test_without_the_stack_it_says_how_to_get_it(aws: Aws) -> None:
    aws.account.outputs = None
    ended = aws.train("--yes")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "cdk deploy SageMakerTrainingStack" in ended.stderr


def test_a_stack_that_cannot_be_requested_is_no_answer(aws: Aws) -> None:
    aws.account.unavailable = {"stack"}
    ended = aws.train("--yes")
    assert ended.exit_code == ExitCode.UNKNOWN
    assert "Nothing was started: no answer about stack" in ended.stderr


def test_what_is_started_is_shown_with_its_cost_before_the_prompt(aws: Aws) -> None:
    shown = aws.train("--hyperparameter", "note=two words", typed="n\n").stdout.partition("Start it?")[0]
    for part in (
        "train.py --note 'two words'",
        "1 x ml.trn1.32xlarge in us-west-2, on demand",
        "1 file",
        "per hour: $1.00; at most, in 24 h: $24.00",
    ):
        assert part in shown


@pytest.mark.parametrize(
    ("typed", "code"), [("n\n", ExitCode.NOT_READY), ("\n", ExitCode.NOT_READY), ("", ExitCode.BAD_INPUT)]
)
def test_without_a_yes_nothing_is_started(aws: Aws, typed: str, code: ExitCode) -> None:
    ended = aws.train(typed=typed)
    assert (ended.exit_code, aws.jobs.started) == (code, [])


def test_with_a_yes_the_source_is_uploaded_and_the_job_started(aws: Aws) -> None:
    ended = aws.train(typed="y\n")
    assert ended.exit_code == ExitCode.OK
    (folder,) = aws.jobs.uploaded
    assert folder.startswith(f"{OUTPUTS['SourceUrl']}/")
    assert aws.request["TrainingJobName"] == NAME


def test_a_name_that_is_too_long_is_reported_once(aws: Aws) -> None:
    ended = aws.run("run", "train.py", "--name", f"trn-pilot--{'x' * 60}", "--json", "--yes")
    (problem,) = json.loads(ended.stdout)["problems"]
    assert (problem["key"], problem["allowed"]) == ("--name", "up to 63 characters")


def test_what_is_left_out_of_the_source_is_reported(aws: Aws) -> None:
    Path(".env").write_text("TOKEN=x")
    ended = aws.train("--dry-run", "--source", ".")
    assert "Left out of the source: .env (may hold a secret)" in ended.stderr
    assert json.loads(ended.stdout)


def test_a_check_that_fails_starts_nothing(aws: Aws) -> None:
    aws.account.image_is_there = False
    ended = aws.train("--yes")
    assert (ended.exit_code, aws.jobs.started) == (ExitCode.NOT_READY, [])
    assert "not ready: nothing was started." in ended.stderr


@pytest.mark.parametrize("typed", [None, "y\n"], ids=["in a script", "by hand"])
def test_a_check_without_an_answer_starts_nothing_until_it_is_accepted_by_name(aws: Aws, typed: str | None) -> None:
    aws.account.unavailable = {"role"}
    yes = () if typed else ("--yes",)
    ended = aws.train(*yes, typed=typed)
    assert (ended.exit_code, aws.jobs.started) == (ExitCode.UNKNOWN, [])
    assert "nothing was started. To start all the same: --suppress role" in ended.stderr
    assert aws.train(*yes, "--suppress", "role", typed=typed).exit_code == ExitCode.OK


def test_with_every_check_suppressed_nothing_is_started(aws: Aws) -> None:
    ended = aws.train("--yes", *[option for check in JOB_CHECKS for option in ("--suppress", check)])
    assert (ended.exit_code, aws.jobs.started) == (ExitCode.UNKNOWN, [])
    assert "Every check was suppressed: leave one." in ended.stderr


def test_a_check_without_an_answer_is_reported_as_json_too(aws: Aws) -> None:
    aws.account.unavailable = {"role"}
    printed = json.loads(aws.train("--yes", "--json").stdout)
    assert (printed["started"], printed["verdict"]) == (False, "unknown")


def test_a_check_that_is_suppressed_does_not_block(aws: Aws) -> None:
    aws.account.image_is_there = False
    assert aws.train("--yes", "--suppress", "image").exit_code == ExitCode.OK


@pytest.mark.parametrize(
    ("end", "code"), [(COMPLETED, ExitCode.OK), (FAILED, ExitCode.NOT_READY), (STOPPED, ExitCode.NOT_READY)]
)
def test_the_exit_code_is_the_jobs_result(aws: Aws, end: Any, code: ExitCode) -> None:
    aws.jobs.states = (STARTING, TRAINING, end)
    assert aws.train("--yes").exit_code == code


def test_a_failed_job_shows_its_own_reason(aws: Aws) -> None:
    aws.jobs.states = (FAILED,)
    assert "RuntimeError: no data (exit code 1)" in aws.train("--yes").stdout


def test_lines_of_several_nodes_say_whose_they_are(aws: Aws) -> None:
    aws.jobs.written = [[], [line("loss 1", "algo-1"), line("loss 2", "algo-2")]]
    shown = aws.train("--yes").stdout
    assert "algo-1 | loss 1\nalgo-2 | loss 2\n" in shown


def test_aws_that_answers_no_more_is_no_result_and_says_that_the_job_runs(aws: Aws) -> None:
    aws.jobs.states = (TRAINING, *[NO_ANSWER] * follow.UNANSWERED)
    ended = aws.train("--yes")
    assert ended.exit_code == ExitCode.UNKNOWN
    assert f"`trn sagemaker stop {NAME}`" in ended.stderr


def test_a_job_that_aws_refuses_says_why(aws: Aws) -> None:
    aws.jobs.refuses = "AWS answered ResourceLimitExceeded"
    ended = aws.train("--yes")
    assert ended.exit_code == ExitCode.NOT_READY
    assert "Nothing was started: AWS answered ResourceLimitExceeded" in ended.stderr


@pytest.mark.parametrize(
    ("error", "code"),
    [(JobUnknownError("time-out"), ExitCode.UNKNOWN), (KeyboardInterrupt(), ExitCode.INTERRUPTED)],
)
def test_a_job_that_may_have_been_started_is_not_reported_as_refused(
    aws: Aws, error: BaseException, code: ExitCode
) -> None:
    aws.jobs.fails_with = error
    ended = aws.train("--yes")
    assert ended.exit_code == code
    assert f"`trn sagemaker describe {NAME}` before you try again" in ended.stderr
    assert "Nothing was started" not in ended.stderr


def test_detached_it_does_not_follow(aws: Aws) -> None:
    ended = aws.train("--yes", "--detach")
    assert (ended.exit_code, aws.jobs.polls) == (ExitCode.OK, 0)
    assert f"`trn sagemaker logs {NAME} --follow`" in ended.stdout


def test_json_has_the_end_of_the_job_and_nothing_else_on_standard_output(aws: Aws) -> None:
    aws.jobs.written = [[line("loss 1")]]
    ended = aws.train("--yes", "--json")
    printed = json.loads(ended.stdout)
    assert (printed["started"], printed["state"]["status"]) == (True, "Completed")
    assert "loss 1" in ended.stderr


def test_json_asks_no_questions(aws: Aws) -> None:
    ended = aws.train("--json")
    assert (ended.exit_code, aws.jobs.started) == (ExitCode.BAD_INPUT, [])


def interrupted(aws: Aws, typed: str) -> Result:
    aws.jobs.states = (TRAINING, KeyboardInterrupt(), TRAINING, COMPLETED)
    return aws.train("--yes", typed=typed)


def test_ctrl_c_prompts_and_can_stop_the_job(aws: Aws) -> None:
    ended = interrupted(aws, "s\n")
    assert (ended.exit_code, aws.jobs.stopped) == (ExitCode.NOT_READY, [NAME])
    assert "Asked SageMaker to stop" in ended.stderr


def test_ctrl_c_prompts_and_can_leave_the_job_running(aws: Aws) -> None:
    ended = interrupted(aws, "l\n")
    assert (ended.exit_code, aws.jobs.stopped) == (ExitCode.INTERRUPTED, [])
    assert "runs on and is billed" in ended.stderr


@pytest.mark.parametrize("typed", ["f\n", "\n"])
def test_ctrl_c_prompts_and_can_go_on_following(aws: Aws, typed: str) -> None:
    ended = interrupted(aws, typed)
    assert (ended.exit_code, aws.jobs.stopped) == (ExitCode.OK, [])


def test_ctrl_c_twice_leaves_the_job_running(aws: Aws) -> None:
    ended = interrupted(aws, "")  # the end of input is what a second Ctrl-C is to a prompt
    assert (ended.exit_code, aws.jobs.stopped) == (ExitCode.INTERRUPTED, [])


def test_ctrl_c_without_a_person_leaves_the_job_running(aws: Aws) -> None:
    aws.is_interactive = False
    ended = interrupted(aws, "s\n")
    assert (ended.exit_code, aws.jobs.stopped) == (ExitCode.INTERRUPTED, [])


def test_ctrl_c_on_a_terminal_prompts_and_stops_the_job() -> None:
    """With the terminal, the signal and the prompt that a person has."""
    ours, theirs = pty.openpty()
    arguments = [sys.executable, "-m", "tests.cli.jobs.sagemaker_on_a_terminal"]
    child = subprocess.Popen(arguments, cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    try:
        _read_until("InProgress, Training", ours)
        os.write(ours, b"\x03")
        _read_until("keep following it (f)?", ours)
        os.write(ours, b"s\n")
        _read_until("Asked SageMaker to stop", ours)
        assert child.wait(timeout=60) == ExitCode.NOT_READY
    finally:
        child.kill()
        child.wait()
        os.close(ours)


def _read_until(text: str, terminal: int) -> None:
    shown = ""
    until = time.monotonic() + 60
    while text not in shown:
        ready, _, _ = select.select([terminal], [], [], max(0, until - time.monotonic()))
        assert ready, shown
        shown += os.read(terminal, 4096).decode()


def test_no_other_command_can_start_a_job() -> None:
    others = [file for file in python_files() if file.parts[0] != "tests" and "local" not in str(file)]
    users = [file.name for file in others if "jobs.aws_training_job_control" in (ROOT / file).read_text()]
    assert sorted(users) == [
        "run.py",
        "sagemaker_logs_command.py",
        "sagemaker_run_command.py",
        "sagemaker_stop_command.py",
    ]

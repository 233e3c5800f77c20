"""`trn sagemaker` after the start and before it: preflight, list, describe, logs and stop."""

import json
from datetime import timedelta
from typing import Any

import pytest

from tests.cli.jobs.sagemaker_account import NAME, Aws, aws_in_memory
from tests.core.fake_jobs import COMPLETED, FAILED, NO_ANSWER, NOON, TRAINING, line
from trainium_cli.exit_codes import ExitCode
from trainium_core.engines.sagemaker.jobs.training_jobs import JobSummary

__all__ = ["aws_in_memory"]


def test_preflight_starts_nothing_and_reports_the_verdict(aws: Aws) -> None:
    ended = aws.run("preflight")
    assert (ended.exit_code, aws.jobs.started) == (ExitCode.OK, [])
    assert "ready: 1 x trn1.32xlarge in us-west-2 (6 pass)" in ended.stdout


@pytest.mark.parametrize(("unavailable", "code"), [("role", ExitCode.UNKNOWN), ("price", ExitCode.OK)])
def test_preflight_that_lacks_an_answer_is_not_ready_unless_it_is_a_price(
    aws: Aws, unavailable: str, code: ExitCode
) -> None:
    aws.account.unavailable = {unavailable}
    assert aws.run("preflight").exit_code == code


def test_preflight_as_json(aws: Aws) -> None:
    aws.account.found_role = None
    ended = aws.run("preflight", "--json")
    assert (ended.exit_code, json.loads(ended.stdout)["verdict"]) == (ExitCode.NOT_READY, "not ready")


def test_the_list_shows_jobs_of_the_cluster_alone_by_default(aws: Aws) -> None:
    summary = JobSummary(name=NAME, status="Completed", created=NOON, ended=NOON + timedelta(minutes=90))
    aws.jobs.summaries = [summary]
    shown = aws.run("list").stdout
    assert "2026-11-21 12:00Z" in shown
    assert "90 min" in shown
    aws.run("list", "--all", "--status", "failed", "--most", "3")
    assert aws.jobs.listed == [("trn-pilot--", "", 20), ("", "Failed", 3)]
    assert [job["name"] for job in json.loads(aws.run("list", "--json").stdout)] == [NAME]


def test_an_empty_list_says_so(aws: Aws) -> None:
    assert aws.run("list").stdout == "No such job in us-west-2.\n"


def test_a_job_is_described_with_the_reason_of_its_failure(aws: Aws) -> None:
    aws.jobs.states = (FAILED,)
    ended = aws.run("describe", NAME)
    assert ended.exit_code == ExitCode.OK
    assert "RuntimeError: no data" in ended.stdout
    assert json.loads(aws.run("describe", NAME, "--json").stdout)["reason"] == FAILED.reason


def test_the_record_is_one_json_object_a_line(aws: Aws) -> None:
    aws.jobs.states = (FAILED,)
    lines = [json.loads(line) for line in aws.run("describe", NAME, "--record").stdout.splitlines()]
    assert [line["event"] for line in lines] == ["submitted", "end"]
    assert lines[-1]["reason"] == FAILED.reason


@pytest.mark.parametrize("command", ["describe", "logs", "stop"])
@pytest.mark.parametrize(("answer", "code"), [(None, ExitCode.NOT_READY), (NO_ANSWER, ExitCode.UNKNOWN)])
def test_a_missing_job_is_distinguished_from_an_unanswered_call(
    aws: Aws, command: str, answer: Any, code: ExitCode
) -> None:
    aws.jobs.states = (answer,)
    assert aws.run(command, NAME).exit_code == code


@pytest.mark.parametrize("command", ["describe", "logs"])
@pytest.mark.parametrize(
    ("answer", "says"), [(None, f"There is no training job {NAME}"), (NO_ANSWER, "Could not tell: no answer")]
)
def test_what_is_not_to_be_shown_is_json_too(aws: Aws, command: str, answer: Any, says: str) -> None:
    aws.jobs.states = (answer,)
    assert json.loads(aws.run(command, NAME, "--json").stdout)["error"].startswith(says)


def test_logs_show_every_page_to_the_last(aws: Aws) -> None:
    aws.jobs.written = [[line("loss 1")], [line("loss 2")]]
    aws.jobs.pages = 2
    assert aws.run("logs", NAME).stdout == "algo-1 | loss 1\nalgo-1 | loss 2\n"


def test_logs_that_break_off_say_so(aws: Aws) -> None:
    aws.jobs.written = [[line("loss 1")], NO_ANSWER]
    aws.jobs.pages = 2
    ended = aws.run("logs", NAME)
    assert (ended.exit_code, ended.stdout) == (ExitCode.UNKNOWN, "algo-1 | loss 1\n")
    assert "Could not tell the rest: no answer" in ended.stderr


def test_logs_show_what_there_is(aws: Aws) -> None:
    aws.jobs.written = [[line("loss 1")]]
    assert aws.run("logs", NAME).stdout == "algo-1 | loss 1\n"


def test_logs_of_a_silent_job_say_where_it_stands(aws: Aws) -> None:
    assert "has written nothing yet: InProgress, Starting" in aws.run("logs", NAME).stderr


def test_logs_that_follow_end_with_the_jobs_result(aws: Aws) -> None:
    aws.jobs.states = (TRAINING, FAILED)
    assert aws.run("logs", NAME, "--follow").exit_code == ExitCode.NOT_READY


def test_stop_prompts_first(aws: Aws) -> None:
    aws.jobs.states = (TRAINING,)
    ended = aws.run("stop", NAME, typed="n\n")
    assert (ended.exit_code, aws.jobs.stopped) == (ExitCode.NOT_READY, [])
    ended = aws.run("stop", NAME, typed="y\n")
    assert (ended.exit_code, aws.jobs.stopped) == (ExitCode.OK, [NAME])


def test_stop_leaves_a_job_that_is_over_as_it_is(aws: Aws) -> None:
    aws.jobs.states = (COMPLETED,)
    ended = aws.run("stop", NAME, "--yes")
    assert (ended.exit_code, aws.jobs.stopped) == (ExitCode.OK, [])


def test_a_stop_that_aws_refuses_is_none(aws: Aws) -> None:
    aws.jobs.states, aws.jobs.refuses = (TRAINING,), "not allowed"
    assert aws.run("stop", NAME, "--yes").exit_code == ExitCode.NOT_READY

"""How errors of commands are shown: one message, JSON with --json, and an exit code."""

import errno
import json

import click
import pytest
from click.testing import CliRunner

from trainium_cli.boundary import Boundary
from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.invocation import Invocation, json_option, pass_invocation
from trainium_core.problems import PlanError, Problem
from trainium_runtime.errors import DeniedError, RequestRefusedError, UnavailableError

WITHOUT_TERMINAL = click.Abort()
WITHOUT_TERMINAL.__context__ = EOFError()
ERRORS = {
    CliError("not ready yet", ExitCode.NOT_READY): (ExitCode.NOT_READY, "not ready yet"),
    UnavailableError("no answer", remedy="sign in"): (ExitCode.UNKNOWN, "Unknown: no answer: sign in"),
    DeniedError("x is missing"): (ExitCode.UNKNOWN, "Unknown: x is missing: use a profile"),
    RequestRefusedError("AWS says no"): (ExitCode.NOT_READY, "AWS says no"),
    FileNotFoundError(2, "No such file", "plan.json"): (ExitCode.BAD_INPUT, "trn: plan.json: No such file"),
    KeyError("x"): (ExitCode.UNKNOWN, "trn: KeyError: 'x'\nUnexpected error. Set TRN_DEBUG=1 for a traceback."),
    click.UsageError("specify one"): (ExitCode.BAD_INPUT, "specify one"),
    click.Abort(): (ExitCode.NOT_READY, "Not confirmed."),
    WITHOUT_TERMINAL: (ExitCode.BAD_INPUT, "Not a terminal. Pass --yes to confirm."),
}


def group(outcome: Exception | ExitCode) -> Boundary:
    """A program with one command that raises or returns this."""
    trn = Boundary("trn", lazy_commands={}, callback=lambda: None)

    @click.command()
    @json_option
    @pass_invocation
    def end(invocation: Invocation) -> ExitCode:  # noqa: ARG001
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    trn.get_command = lambda ctx, cmd_name: end  # noqa: ARG005
    trn.resolve_command = lambda ctx, args: ("end", end, args[1:])  # noqa: ARG005
    return trn


@pytest.mark.parametrize(("error", "expected"), ERRORS.items(), ids=lambda one: type(one).__name__)
def test_error_becomes_message_and_exit_code(error: Exception, expected: tuple[ExitCode, str]) -> None:
    code, message = expected
    ended = CliRunner().invoke(group(error), ["end"])
    assert (ended.exit_code, ended.stdout) == (code, "")
    assert message in ended.stderr


@pytest.mark.parametrize(("error", "expected"), ERRORS.items(), ids=lambda one: type(one).__name__)
def test_error_is_json_on_standard_output_with_json_option(error: Exception, expected: tuple[ExitCode, str]) -> None:
    code, message = expected
    ended = CliRunner().invoke(group(error), ["end", "--json"])
    assert ended.exit_code == code
    assert json.loads(ended.stdout)["error"].startswith(message)
    assert message in ended.stderr


def test_plan_error_is_json_with_its_problems() -> None:
    error = PlanError([Problem(key="nodes", got=0, allowed="1 or more", fix="give 1")])
    ended = CliRunner().invoke(group(error), ["end", "--json"])
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert [problem["key"] for problem in json.loads(ended.stdout)["problems"]] == ["nodes"]


def test_closed_pipe_ends_the_command_quietly() -> None:
    result = CliRunner().invoke(group(BrokenPipeError(errno.EPIPE, "Broken pipe")), ["end"])
    assert (result.exit_code, result.output) == (1, "")


def test_returned_code_is_the_exit_code() -> None:
    assert CliRunner().invoke(group(ExitCode.RESULTS_LOST), ["end"]).exit_code == ExitCode.RESULTS_LOST


def test_unexpected_error_is_raised_for_debugging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRN_DEBUG", "1")
    assert isinstance(CliRunner().invoke(group(KeyError("x")), ["end"]).exception, KeyError)

"""The exit codes of `trn`, and the error that ends a command with one."""

from enum import IntEnum
from typing import IO, Any

import click

from trainium_cli.terminal import echo


class ExitCode(IntEnum):
    """Exit codes of the `trn` commands.

    `trn local -- COMMAND` returns the exit code of COMMAND instead, and `trn shell` that of the session.
    """

    OK = 0
    NOT_READY = 1
    BAD_INPUT = 2
    UNKNOWN = 3
    RESULTS_LOST = 4
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        return _MEANING[self]


_MEANING = {
    ExitCode.OK: "done, or ready",
    ExitCode.NOT_READY: "not ready, not confirmed, or failed",
    ExitCode.BAD_INPUT: "bad usage, or mistakes in a file, such as a plan that cannot be deployed",
    ExitCode.UNKNOWN: "unknown: a request to AWS failed, the answer is incomplete, or a job is still running",
    ExitCode.RESULTS_LOST: "a job's checkpoints or outputs did not reach S3 and are only on its nodes",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C; the message says what is still running",
}


CHECK_EXIT_CODES = {
    "pass": ExitCode.OK,
    "warn": ExitCode.OK,
    "fail": ExitCode.NOT_READY,
    "unknown": ExitCode.UNKNOWN,
}
"""Exit codes by the outcome of a check."""


def exit_code_table() -> str:
    """One line per code, for the help text."""
    return "\n".join(f"  {code.value}  {code.meaning}" for code in ExitCode)


class CliError(click.ClickException):
    """Ends a command with a message and an exit code. `boundary.py` shows it."""

    def __init__(self, message: str, exit_code: ExitCode) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # pyright: ignore[reportAttributeAccessIssue]  # a ClassVar in click

    def show(self, file: IO[Any] | None = None) -> None:
        echo(self.message, file=file, err=file is None)

"""Turns errors of commands into a message on standard error, JSON with --json, and an exit code."""

import os
from dataclasses import asdict
from typing import Any

import click

from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.interruption import report_interruption
from trainium_cli.lazy_group import LazyGroup
from trainium_cli.terminal import print_json, with_prefix
from trainium_runtime.errors import RequestRefusedError, UnavailableError


class Boundary(LazyGroup):
    """The group of all commands. A command returns its exit code, or None for 0. Errors that it raises are shown."""

    def invoke(self, ctx: click.Context) -> None:
        """Run a command, and exit with its code."""
        # The arguments after -- belong to another program, such as a script of `trn run` or a command of `trn local`.
        options = ctx.args[: ctx.args.index("--")] if "--" in ctx.args else ctx.args
        as_json = "--json" in options
        try:
            code = super().invoke(ctx)
        except KeyboardInterrupt:
            code = _interrupted(as_json=as_json)
        except (click.exceptions.Exit, SystemExit, BrokenPipeError):  # click ends quietly on a closed pipe
            raise
        except Exception as error:
            if isinstance(error, click.Abort) and isinstance(error.__context__, KeyboardInterrupt):  # at a prompt
                code = _interrupted(as_json=as_json)
            else:
                code = _show(error, as_json=as_json)
        ctx.exit(code if isinstance(code, int) else ExitCode.OK)


def _interrupted(*, as_json: bool) -> ExitCode:
    message = report_interruption()
    if as_json:
        print_json({"error": message})
    return ExitCode.INTERRUPTED


def _show(error: Exception, *, as_json: bool) -> int:
    """Show an error, and return its exit code. With TRN_DEBUG, unexpected errors are raised again."""
    from trainium_core.problems import PlanError  # late: its package imports the whole plan

    details: dict[str, Any] | None = None
    match error:
        case click.ClickException():
            shown = error
        case PlanError():
            shown = CliError(str(error).rstrip(), ExitCode.BAD_INPUT)
            details = {"problems": [asdict(problem) for problem in error.problems]}
        case UnavailableError():
            shown = CliError(f"Unknown: {error}", ExitCode.UNKNOWN)
        case RequestRefusedError():
            shown = CliError(str(error), ExitCode.NOT_READY)
        case click.Abort() if isinstance(error.__context__, EOFError):
            shown = CliError("\nNot a terminal. Pass --yes to confirm.", ExitCode.BAD_INPUT)
        case click.Abort():  # confirm(abort=True)
            shown = CliError("Not confirmed.", ExitCode.NOT_READY)
        case _ if "TRN_DEBUG" in os.environ:
            raise error
        case OSError(filename=str() as name):  # such as a read-only folder
            shown = CliError(f"trn: {name}: {error.strerror}", ExitCode.BAD_INPUT)
        case _:
            message = f"trn: {type(error).__name__}: {error}\nUnexpected error. Set TRN_DEBUG=1 for a traceback."
            shown = CliError(message, ExitCode.UNKNOWN)
    if as_json:
        print_json(details or {"error": shown.format_message().strip()})
    shown.message = with_prefix(shown.message)  # pyright: ignore[reportAttributeAccessIssue]  # final in click
    shown.show()
    return shown.exit_code

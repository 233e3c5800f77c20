"""`trn explain`: the cause of an error, and what helps."""

import sys
from dataclasses import asdict

import click

from trainium_cli.exit_codes import ExitCode
from trainium_cli.invocation import Invocation, json_option, pass_invocation
from trainium_cli.terminal import console, echo, pairs, print_json
from trainium_core.stacks.known_errors import known_error, known_errors


@click.command()
@click.argument("text", nargs=-1, metavar="[TEXT]...")
@json_option
@pass_invocation
def explain(invocation: Invocation, text: tuple[str, ...]) -> ExitCode:
    """Show the cause of an error and the fix.

    TEXT is the error message, in quotes. Default: standard input. Works offline.

    Exit code 0: the error is known. 1: it is not.
    """
    pasted = " ".join(text) if text or sys.stdin.isatty() else sys.stdin.read()
    if not pasted.strip():
        raise click.UsageError("paste the error, in quotes: trn explain 'VcpuLimitExceeded ...'")
    found = known_error(pasted)
    if invocation.as_json:
        print_json(asdict(found) if found else None)
    elif found:
        source = f"{found.source} (looked up {found.date})"
        rows = [("error", found.name), ("cause", found.cause), ("fix", found.fix), ("source", source)]
        console().print(pairs(rows, label_width=6))
    else:
        known = "\n".join(f"  {one.name}" for one in known_errors())
        echo(
            f"Unknown error. Known errors:\n{known}\n`trn support` writes an archive for the person who helps.",
            err=True,
        )
    return ExitCode.OK if found else ExitCode.NOT_READY

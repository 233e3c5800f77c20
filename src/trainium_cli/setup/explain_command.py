"""`trn explain`: the cause of an error, and the fix."""

import sys
from dataclasses import asdict

import click

from trainium_cli.exit_codes import ExitCode
from trainium_cli.invocation import Invocation, json_option, pass_invocation
from trainium_cli.terminal import console, echo, pairs, print_json
from trainium_core.explanations.known_errors import CAUSE, Explanation, explain_log, known_errors


@click.command()
@click.argument("text", nargs=-1, metavar="[TEXT]...")
@json_option
@pass_invocation
def explain(invocation: Invocation, text: tuple[str, ...]) -> ExitCode:
    """Show the cause of an error and the fix.

    TEXT is the error message, in quotes. With -, or in a pipe without TEXT, the command reads standard input, which may
    be a whole log: it shows the first cause in the log, not its consequences. Works offline.

        trn logs JOB | trn explain -

    Exit code 0: the error is known. 1: it is unknown.
    """
    reads = text == ("-",) or (not text and not sys.stdin.isatty())
    pasted = sys.stdin.read() if reads else " ".join(text)
    if not pasted.strip():
        where = "standard input is empty" if reads else "TEXT is empty"
        raise click.UsageError(f"{where}: pass the error, such as trn explain 'VcpuLimitExceeded ...'")
    lines = pasted.splitlines()
    found = explain_log(lines)
    if invocation.as_json:
        print_json(_as_json(found) if found else None)
    elif found:
        console().print(pairs(_rows(found, is_log=len(lines) > 1), label_width=7))
    else:
        known = "\n".join(f"  {error.name}" for error in known_errors())
        echo(
            f"Unknown error. Known errors:\n{known}\n`trn support` writes an archive for a support request.",
            err=True,
        )
    return ExitCode.OK if found else ExitCode.NOT_READY


def _rows(found: Explanation, *, is_log: bool) -> list[tuple[str, str]]:
    error = found.error
    note = "" if error.kind == CAUSE else f" ({error.kind})"
    rows = [
        ("error", f"{error.name}{note}"),
        ("line", f"{found.line}: {found.text}" if is_log else ""),
        ("before", f"unknown exception: {found.unknown}" if found.unknown else ""),
        ("cause", error.cause),
        ("fix", error.fix),
        ("source", f"{error.source} (looked up {error.date})"),
        ("", error.url),
    ]
    return [(label, value) for label, value in rows if value]


def _as_json(found: Explanation) -> dict[str, object]:
    where = {"line": found.line, "text": found.text, "unknown_before": found.unknown}
    return {**asdict(found.error), **where}

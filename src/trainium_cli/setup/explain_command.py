"""`trn explain`: the cause of an error, and the fix."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.invocation import Invocation, json_option, pass_invocation
from trainium_cli.terminal import console, echo, pairs, print_json
from trainium_core.assess.rules import STACKS, CodeRule, rules
from trainium_core.explanations.known_errors import CAUSE, Explanation, explain_log, known_errors, nearest_errors

_LONGEST_NAME = 255


@click.command()
@click.argument("text", nargs=-1, metavar="[TEXT | FILE | RULE]...")
@json_option
@pass_invocation
def explain(invocation: Invocation, text: tuple[str, ...]) -> ExitCode:
    """Show the cause of an error and the fix.

    TEXT is the error message, in quotes, or the name of a known error. FILE is a log: the command shows its first
    cause, not the consequences. With -, or in a pipe without TEXT, the command reads the log from standard input. RULE
    is the ID of a rule of `trn assess`, such as C03. Works offline.

        trn logs JOB | trn explain -

    Exit code 0: the error is known. 1: it is unknown.
    """
    one = text[0] if len(text) == 1 else ""
    if rule := _rule(one):
        if invocation.as_json:
            print_json(_rule_as_json(rule))
        else:
            console().print(pairs(_rule_rows(rule), label_width=7))
        return ExitCode.OK
    reads = text == ("-",) or (not text and not sys.stdin.isatty())
    pasted = sys.stdin.read() if reads else _content(one) or " ".join(text)
    if not pasted.strip():
        where = "standard input is empty" if reads else "TEXT is empty"
        raise click.UsageError(f"{where}: pass the error, such as trn explain 'VcpuLimitExceeded ...'")
    lines = pasted.splitlines()
    named = next((error for error in known_errors() if error.name == pasted.strip()), None)
    found = Explanation(error=named, line=1, text=pasted.strip()) if named else explain_log(lines)
    if invocation.as_json:
        print_json(_as_json(found) if found else None)
    elif found:
        console().print(pairs(_rows(found, is_log=len(lines) > 1), label_width=7))
    else:
        _show_nearest(lines)
    return ExitCode.OK if found else ExitCode.NOT_READY


def _rule(name: str) -> CodeRule | None:
    return next((rule for key, rule in rules().items() if key.casefold() == name.casefold()), None) if name else None


def _content(name: str) -> str:
    """The text of the file with this name; empty if there is none."""
    if not name or len(name) > _LONGEST_NAME or not Path(name).is_file():
        return ""
    try:
        return Path(name).read_text(errors="replace")
    except OSError as error:
        raise CliError(f"{name} cannot be read: {error.strerror}", ExitCode.BAD_INPUT) from None


def _show_nearest(lines: Sequence[str]) -> None:
    nearest = "".join(f"\n  trn explain '{error.name}'" for error in nearest_errors("\n".join(lines)))
    like = f" The nearest known errors:{nearest}" if nearest else ""
    echo(f"Unknown error.{like}\n`trn support` writes an archive for a support request.", err=True)


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


def _rule_rows(rule: CodeRule) -> list[tuple[str, str]]:
    rows = [
        ("rule", f"{rule.id}: {rule.title}"),
        *((stack, f"{rule.severity[stack].name}: {rule.severity[stack].meaning}") for stack in STACKS),
        ("why", rule.why),
        ("fix", rule.fix),
        ("doubt", rule.doubt),
        ("example", rule.bad.strip()),
        ("instead", rule.good.strip()),
        ("source", f"{rule.source} (looked up {rule.date})"),
        ("", rule.url),
    ]
    return [(label, value) for label, value in rows if value]


def _rule_as_json(rule: CodeRule) -> Mapping[str, object]:
    shown = ("id", "title", "kind", "why", "fix", "doubt", "effort", "source", "date", "url", "bad", "good")
    severity = {stack: rule.severity[stack].name for stack in STACKS}
    return {name: getattr(rule, name) for name in shown} | {"severity": severity}

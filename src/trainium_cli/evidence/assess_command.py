"""`trn assess`: what prevents code from running on Trainium."""

from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import click

from trainium_cli.evidence.assess_text import show_assessment
from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.progress_reporter import ProgressReporter
from trainium_cli.terminal import echo, print_json
from trainium_core.assess.assessment import assess as assess_paths
from trainium_core.assess.findings import Assessment
from trainium_core.assess.html_report import as_html
from trainium_core.assess.report_formats import as_json, as_sarif
from trainium_core.assess.rules import STACKS, Severity

FAIL_ON = [severity.name for severity in sorted(Severity, reverse=True)[:-1]] + ["never"]


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--stack", type=click.Choice([*STACKS, "both"]), default="both", help="The stack to assess. Default: both."
)
@click.option(
    "--format",
    "shape",
    type=click.Choice(["text", "json", "sarif", "html"]),
    default="text",
    help="How to print it: sarif is for code scanning, html a page to hand on. Default: text.",
)
@click.option(
    "--fail-on",
    type=click.Choice(FAIL_ON),
    default="stops",
    help="The least severity that makes the exit code 1. Default: stops.",
)
def assess(paths: tuple[Path, ...], stack: str, shape: str, fail_on: str) -> ExitCode:
    """Show what keeps code from running on Trainium.

    Reads Python, notebooks, requirements and lock files, Dockerfiles, shell scripts and CUDA sources. Nothing is run,
    imported or sent.

    A comment such as `# trn: ignore[C03] runs on GPUs too` on the line ignores a finding; it needs a reason.

    Exit code 0: no finding of the severity of --fail-on. 1: at least one, or a file that could not be read. 2: nothing
    could be read.
    """
    with ProgressReporter() as progress:
        found = assess_paths(paths, lambda read, total: progress.report("assess", f"{read:,} of {total:,} files read"))
    _refuse_nothing(found, paths)
    shown = STACKS if stack == "both" else (stack,)
    if shape == "json":
        print_json(as_json(found, shown, version("trainium-cdk")))
    elif shape == "sarif":
        print_json(as_sarif(found, shown, version("trainium-cdk")))
    elif shape == "html":
        echo(as_html(found, shown, version("trainium-cdk"), datetime.now(UTC).date()))
    else:
        show_assessment(found, shown)
    if fail_on == "never":
        return ExitCode.OK
    fails = bool(found.unreadable) or found.worst(shown) >= Severity[fail_on]
    return ExitCode.NOT_READY if fails else ExitCode.OK


def _refuse_nothing(found: Assessment, paths: tuple[Path, ...]) -> None:
    if found.files:
        return
    named = ", ".join(map(str, paths))
    reasons = "".join(f"\n  {one}" for one in found.unreadable) or ": no file of a kind that it reads"
    raise CliError(f"Nothing could be read in {named}{reasons}", ExitCode.BAD_INPUT)

"""`trn assess`: what prevents code from running on Trainium."""

from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import click

from trainium_cli.evidence.assess_text import show_assessment, show_comparison
from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.invocation import Invocation, context_options, pass_invocation
from trainium_cli.progress_reporter import ProgressReporter
from trainium_cli.terminal import echo, print_json
from trainium_core.assess.assessment import assess as assess_paths
from trainium_core.assess.findings import Assessment
from trainium_core.assess.observed import Comparison, compared
from trainium_core.assess.observed import as_json as comparison_as_json
from trainium_core.assess.report_formats import as_html, as_json, as_sarif
from trainium_core.assess.rules import FAIL_ON, STACKS, Severity
from trainium_core.evidence.record import LAB, TRAINIUM


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--stack", type=click.Choice([*STACKS, "both"]), default="both", help="The software stack to assess. Default: both."
)
@click.option(
    "--format",
    "shape",
    type=click.Choice(["text", "json", "sarif", "html"]),
    default="text",
    help="Output format: sarif for code scanning, html for a page to share. Default: text.",
)
@click.option(
    "--fail-on",
    type=click.Choice(FAIL_ON),
    default="stops",
    help="Lowest severity that sets exit code 1; never: findings and unreadable files do not. Default: stops.",
)
@click.option(
    "--observed",
    metavar="JOB",
    help="Compare with the counters of this job, which must have been started with `trn run --observe`. Reads AWS.",
)
@context_options
@pass_invocation
def assess(
    invocation: Invocation, paths: tuple[Path, ...], stack: str, shape: str, fail_on: str, observed: str | None
) -> ExitCode:
    """Show what keeps code from running on Trainium.

    Reads Python, notebooks, package lists (requirements, lock, pyproject and conda files), Dockerfiles, shell scripts,
    Makefiles and CUDA sources, and reports weights that are only Git LFS pointers. Nothing is run, imported or sent.
    With --observed, the output also compares the findings with a job: predicted and seen, predicted and not seen, seen
    and not predicted.

    A comment such as `# trn: ignore[C03] runs on GPUs too` on the first or last line of a finding ignores it. The
    reason is required. Comments in notebooks ignore nothing.

    Exit code 0: no finding with the severity of --fail-on or a higher one. 1: such a finding, a file that could not be
    read, or no job with this ID. 2: nothing could be read, or the job has no counters. 3: a request to AWS failed.
    """
    if observed and shape in ("sarif", "html"):
        raise click.UsageError("--observed requires --format text or json")
    with ProgressReporter() as progress:
        assessment = assess_paths(
            paths, lambda read, total: progress.report("assess", f"{read:,} of {total:,} files read")
        )
    _refuse_nothing(assessment, paths)
    shown = STACKS if stack == "both" else (stack,)
    comparison = _compared(invocation, assessment, observed, shown) if observed else None
    if shape == "json":
        more = {"observed": comparison_as_json(*comparison)} if comparison else {}
        print_json({**as_json(assessment, shown, version("trainium-cdk")), **more})
    elif shape == "sarif":
        print_json(as_sarif(assessment, shown, version("trainium-cdk")))
    elif shape == "html":
        echo(as_html(assessment, shown, version("trainium-cdk"), datetime.now(UTC).date()))
    else:
        show_assessment(assessment, shown)
        if comparison:
            show_comparison(*comparison)
    if fail_on == "never":
        return ExitCode.OK
    fails = bool(assessment.unreadable) or assessment.worst(shown) >= Severity[fail_on]
    return ExitCode.NOT_READY if fails else ExitCode.OK


def _compared(
    invocation: Invocation, assessment: Assessment, job: str, shown: Sequence[str]
) -> tuple[Comparison, str, str]:
    """The comparison with a job, the job, and its side: TRAINIUM or LAB.

    Raises:
        CliError: The job does not exist or has no counters.
        UnavailableError: AWS could not be read.
    """
    # Imported here because --observed is rare: without it, trn assess calls no AWS API and loads no engine.
    from trainium_cli.jobs.job_engines import read_engines

    engines = read_engines(invocation, None, None)
    _, state = engines.known(job, every_node=True)
    nodes = state.attempts[-1].nodes if state.attempts else ()
    observed = [node.observed for node in nodes if node.observed]
    if not observed:
        raise CliError(f"{job} has no counters: start it with `trn run --observe`.", ExitCode.BAD_INPUT)
    if not any(counters.processes or counters.errors for counters in observed):
        raise CliError(
            f"{job} has no counters: its processes did not load PyTorch/XLA or TorchNeuron, or have not ended.",
            ExitCode.BAD_INPUT,
        )
    side = TRAINIUM if invocation.reaches_aws(engines.plan.region) else LAB
    return compared(assessment, observed, shown), job, side


def _refuse_nothing(assessment: Assessment, paths: tuple[Path, ...]) -> None:
    if assessment.files:
        return
    named = ", ".join(map(str, paths))
    reasons = "".join(f"\n  {problem}" for problem in assessment.unreadable) or ": no file of a supported kind"
    raise CliError(f"Nothing could be read in {named}{reasons}", ExitCode.BAD_INPUT)

"""`trn assess`: what prevents code from running on Trainium."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import click

from trainium_cli.evidence.assess_text import show_assessment, show_comparison
from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.invocation import Invocation, context_options, pass_invocation
from trainium_cli.progress_reporter import ProgressReporter
from trainium_cli.terminal import echo, print_json, say
from trainium_core.assess.assessment import assess as assess_paths
from trainium_core.assess.findings import Assessment
from trainium_core.assess.observed import Comparison, compared
from trainium_core.assess.observed import as_json as comparison_as_json
from trainium_core.assess.report_formats import as_html, as_json, as_sarif
from trainium_core.assess.rules import FAIL_ON, STACKS, Severity
from trainium_core.assess.selection import (
    SelectionError,
    as_baseline,
    named_rules,
    project_settings,
    selected,
    without_baseline,
)
from trainium_core.catalog.neuron_software import pytorch_for
from trainium_core.evidence.record import LAB, TRAINIUM
from trainium_core.problems import PlanError


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--framework",
    "stack",
    type=click.Choice([*STACKS, "both"]),
    help="native: PyTorch as its own device; xla: PyTorch/XLA. Default: that of the plan in cdk.json, or both.",
)
@click.option(
    "--select",
    metavar="RULES",
    help="Rules to match, separated by commas: IDs such as C03, letters such as C, or libraries. Default: all.",
)
@click.option("--ignore", metavar="RULES", help="Rules that are not matched, separated by commas.")
@click.option(
    "--exclude",
    multiple=True,
    metavar="GLOB",
    help="Files and folders that are not read: a name, or a path below PATH. Repeat it for several.",
)
@click.option(
    "--baseline", type=click.Path(path_type=Path), metavar="FILE", help="Leave out the findings in this baseline."
)
@click.option(
    "--write-baseline",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write all findings into FILE, for --baseline, and show nothing else.",
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
    invocation: Invocation,
    paths: tuple[Path, ...],
    stack: str | None,
    select: str | None,
    ignore: str | None,
    exclude: tuple[str, ...],
    baseline: Path | None,
    write_baseline: Path | None,
    shape: str,
    fail_on: str | None,
    observed: str | None,
) -> ExitCode:
    """Show what keeps code from running on Trainium.

    Reads Python, notebooks, package lists (requirements, lock, pyproject and conda files), Dockerfiles, shell scripts,
    Makefiles and CUDA sources, and reports weights that are only Git LFS pointers. If PATH is a script or a notebook,
    also reads the modules of its code base that it imports. Nothing is run, imported or sent.

    Options that are not given are read from the table tool.trn.assess of pyproject.toml in the working directory, where
    select, ignore and exclude are lists.

    With --observed, the output also compares the findings with a job: predicted and seen, predicted and not seen, seen
    and not predicted.

    A comment such as `# trn: ignore[C03] runs on GPUs too` on the first or last line of a finding ignores it. The
    reason is required. Comments in notebooks ignore nothing.

    Exit code 0: no finding with the severity of --fail-on or a higher one. 1: such a finding, a file that could not be
    read, or no job with this ID. 2: nothing could be read, or the job has no counters. 3: a request to AWS failed.
    """
    if observed and shape in ("sarif", "html"):
        raise click.UsageError("--observed requires --format text or json")
    try:
        settings = project_settings(Path())
        select_rules = _listed(select) if select else settings.get("select", ())
        ignored_rules = _listed(ignore) if ignore else settings.get("ignore", ())
        named_rules((*select_rules, *ignored_rules))  # Mistakes are shown before a large code base is read.
        with ProgressReporter() as progress:
            assessment = assess_paths(
                paths,
                lambda read, total: progress.report("assess", f"{read:,} of {total:,} files read"),
                exclude=exclude or settings.get("exclude", ()),
            )
        _refuse_nothing(assessment, paths)
        assessment = selected(assessment, select_rules, ignored_rules)
        if write_baseline:
            return _write_baseline(assessment, write_baseline)
        if known := baseline or settings.get("baseline"):
            assessment = without_baseline(assessment, Path(known))
    except SelectionError as error:
        raise CliError(str(error), ExitCode.BAD_INPUT) from None
    shown = _shown(invocation, stack or settings.get("framework"))
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
    lowest: str = fail_on or settings.get("fail-on", "stops")
    if lowest == "never":
        return ExitCode.OK
    fails = bool(assessment.unreadable) or assessment.worst(shown) >= Severity[lowest]
    return ExitCode.NOT_READY if fails else ExitCode.OK


def _listed(names: str) -> list[str]:
    return [name for name in map(str.strip, names.split(",")) if name]


def _write_baseline(assessment: Assessment, file: Path) -> ExitCode:
    try:
        file.write_text(as_baseline(assessment), encoding="utf-8")
    except OSError as error:
        raise CliError(f"{file} cannot be written: {error.strerror}", ExitCode.BAD_INPUT) from None
    say(f"{len(assessment.counted()):,} findings written to {file}")
    return ExitCode.NOT_READY if assessment.unreadable else ExitCode.OK


def _shown(invocation: Invocation, stack: str | None) -> Sequence[str]:
    """The frameworks to assess: the given one, or that of the plan in cdk.json, or both."""
    if not stack and invocation.has_plan:
        with suppress(PlanError):
            plan = invocation.plan()
            framework = plan.framework or pytorch_for(plan.type)
            stack = framework.stack if framework.stack in STACKS else None
    return (stack,) if stack in STACKS else STACKS


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

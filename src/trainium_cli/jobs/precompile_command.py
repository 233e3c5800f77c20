"""`trn precompile`: compile what a script would compile on the cluster, on a host that is there for that alone."""

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from trainium_cli.cluster_selection import read_cluster_plan, stack_of_cluster
from trainium_cli.exit_codes import ExitCode
from trainium_cli.jobs.job_cluster import job_cluster_options
from trainium_cli.jobs.job_following import job_exit_code
from trainium_cli.jobs.job_options import as_given, packed_source, read_request, work_options
from trainium_cli.jobs.node_script import node_script
from trainium_cli.jobs.precompiling import precompile_and_follow
from trainium_cli.plan_options import IRRELEVANT_LATER, refuse
from trainium_cli.terminal import print_json
from trainium_core.facts import facts
from trainium_core.jobs.precompile import precompile_job
from trainium_core.jobs.problems import JobError
from trainium_core.jobs.request import SAGEMAKER

_DEFAULT, _LARGEST = (facts()["precompile"][name] for name in ("default_minutes", "largest_minutes"))


@click.command()
@click.argument("script", type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@work_options
@click.option(
    "--time-limit-minutes",
    help=f"Minutes after which the host ends whatever it does, {_LARGEST} at most. Default: {_DEFAULT}.",
)
@click.option("--dry-run", is_flag=True, help="Show what the host would execute, and start nothing.")
@click.option("--detach", is_flag=True, help="Do not follow it.")
@click.option("--yes", is_flag=True, help="Do not ask, for scripts.")
@job_cluster_options
def precompile(
    script: Path,
    arguments: tuple[str, ...],
    overrides: tuple[str, ...],
    cdk_json: Path | None,
    as_json: bool,
    stack: str | None,
    dry_run: bool,
    detach: bool,
    yes: bool,
    **options: Any,
) -> None:
    """Compile a script's graphs on a host without devices.

    SCRIPT and what follows -- are those of `trn run`; so is a job file. The host is launched for it, has the nodes'
    image, and runs as many processes as the whole job would have; the cluster may sleep meanwhile. A script of PyTorch/
    XLA runs under neuron_parallel_compile: let it do a few steps and no more, and neither save nor compare numbers.

    The host ends when that is over, whatever becomes of this command, and at its time limit at the latest. `trn logs`,
    `trn jobs` and `trn stop` take its job, too.

    Exit code 0: compiled. 1: not all of it, or not started. 3: could not tell. 130: left running, by
    Ctrl-C.
    """
    if as_json and not (yes or dry_run):
        raise click.UsageError("--json asks no questions: give --yes as well")
    try:
        request, _, shown = read_request(script, arguments, options)
    except JobError as error:
        refuse(error, as_json=as_json)
    if request.on == SAGEMAKER:
        raise click.UsageError("the host is of the cluster: leave `on` out of the job file")
    plan = read_cluster_plan(cdk_json, overrides, as_json=as_json, ignoring=IRRELEVANT_LATER)
    try:
        package = packed_source(request)
        job = precompile_job(
            plan, request, script=package.script or None, now=datetime.now(UTC), source_sha256=package.digest
        )
    except JobError as error:
        refuse(as_given(error, shown), as_json=as_json)
    if package.left_out:
        click.echo(f"Left out of the source: {', '.join(package.left_out)}", err=True)
    if dry_run:
        print_json(asdict(job)) if as_json else click.echo(node_script(job))
        return
    state = precompile_and_follow(
        plan,
        stack_of_cluster(plan, stack),
        job,
        package,
        uploads=request.uploads,
        detach=detach,
        yes=yes,
        as_json=as_json,
    )
    raise click.exceptions.Exit(ExitCode.OK if detach else job_exit_code(state))

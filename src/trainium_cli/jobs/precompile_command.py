"""`trn precompile`: compiles a job's graphs on a separate host."""

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from trainium_cli.exit_codes import ExitCode
from trainium_cli.invocation import Invocation, pass_invocation, plan_options, stack_option
from trainium_cli.jobs.job_engines import read_engine
from trainium_cli.jobs.job_following import job_exit_code
from trainium_cli.jobs.job_options import keys_as_given, packed_source, precompile_options, read_request
from trainium_cli.jobs.precompiling import precompile_and_follow
from trainium_cli.terminal import echo, print_json
from trainium_core.engines.ec2.aws_jobs import Ec2Jobs
from trainium_core.engines.registry import CLUSTER
from trainium_core.facts import facts
from trainium_core.jobs.node_script import node_script
from trainium_core.jobs.precompile import precompile_job

_DEFAULT, _LARGEST = (facts()["precompile"][name] for name in ("default_minutes", "largest_minutes"))


@click.command()
@click.argument("script", type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@precompile_options
@click.option(
    "--time-limit-minutes",
    metavar="MINUTES",
    help=f"Time limit of the compilation in minutes, {_LARGEST} at most. Default: {_DEFAULT}.",
)
@click.option("--dry-run", is_flag=True, help="Show what the host would execute, and start nothing.")
@click.option("--detach", is_flag=True, help="Do not follow the compilation.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation, for scripts.")
@plan_options
@stack_option
@pass_invocation
def precompile(
    invocation: Invocation,
    script: Path,
    arguments: tuple[str, ...],
    stack: str | None,
    dry_run: bool,
    detach: bool,
    yes: bool,
    **options: Any,
) -> ExitCode:
    """Compile a job's graphs on a host without devices.

    SCRIPT is a job file, like those of `trn run`, whose command compiles without a device, such as vLLM's with
    VLLM_NEURON_CPU_COMPILE=1. A job file with a script is refused: PyTorch and JAX trace graphs on a Neuron device
    only. A host with the nodes' image is launched for the job, and runs the parts of all nodes; the cluster may be
    asleep.

    The host is terminated when the compilation ends, or soon after the time limit, even if this command is
    interrupted. `trn logs`, `trn jobs` and `trn stop` accept the ID of the job.

    Exit code 0: compiled, or started with --detach. 1: failed, perhaps with a part compiled, or not started. 3:
    unknown. 5: compiled, but outputs did not reach S3 (results-lost). 130: left running by Ctrl-C.
    """
    if invocation.as_json and not (yes or dry_run):
        raise click.UsageError("--json does not prompt: pass --yes as well")
    request, _, shown = read_request(script, arguments, options)
    if request.on not in (None, CLUSTER.key):
        raise click.UsageError(
            f"on: got {request.on!r}\n    fix: remove `on` from the job file; the host belongs to the cluster"
        )
    plan, engine = read_engine(invocation, CLUSTER.key, stack)
    assert isinstance(engine, Ec2Jobs)
    with keys_as_given(shown):
        package = packed_source(request)
        job = precompile_job(
            plan, request, script=package.script or None, now=datetime.now(UTC), source_sha256=package.digest
        )
    if package.left_out:
        echo(f"Left out of the source: {', '.join(package.left_out)}", err=True)
    if dry_run:
        print_json(asdict(job)) if invocation.as_json else echo(node_script(job))
        return ExitCode.OK
    uploads = request.uploads
    state = precompile_and_follow(invocation, engine, job, package, uploads=uploads, detach=detach, yes=yes)
    return ExitCode.OK if detach else job_exit_code(state)

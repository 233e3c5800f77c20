"""`trn logs`: what a job has printed."""

from pathlib import Path

import click

from trainium_cli.exit_codes import ExitCode
from trainium_cli.jobs.job_cluster import end, job_cluster_options, known_job, read_cluster
from trainium_cli.jobs.job_following import follow_job, job_exit_code
from trainium_cli.terminal import print_json
from trainium_core.jobs.follow import JobFollower, LogLine
from trainium_runtime.errors import UnavailableError


@click.command()
@click.argument("job", required=False)
@click.option(
    "--rank",
    type=click.IntRange(min=0),
    help="The process whose lines are wanted. Default: the first.",
)
@click.option("--attempt", type=click.IntRange(min=1), help="The start whose lines are wanted. Default: all.")
@click.option("--follow", is_flag=True, help="Go on until the job is over; the exit code is then the job's result.")
@job_cluster_options
def logs(
    job: str | None,
    rank: int | None,
    attempt: int | None,
    follow: bool,
    overrides: tuple[str, ...],
    cdk_json: Path | None,
    as_json: bool,
    stack: str | None,
) -> None:
    """Show what a job has printed.

    Default: the last one that was started. Without --rank: the lines of the first process, and the tracebacks of the
    others on its node.

    Exit code with --follow as with `trn run`; else 0: shown. 1: there is no such job. 3: could not tell.
    """
    if as_json and follow:
        raise click.UsageError("--json shows what there is: leave --follow out")
    _, jobs = read_cluster(cdk_json, overrides, stack, as_json=as_json)
    state = known_job(jobs, job, as_json=as_json)
    most = state.job.nodes * state.job.processes_per_node
    if rank is not None and rank >= most:
        raise click.UsageError(f"--rank: got {rank}\n    allowed: 0 to {most - 1}, the job's processes")
    follower = JobFollower(state.job.id, jobs, rank=rank, attempt=attempt)
    if as_json:
        try:
            lines = [event for event in follower.events(to_the_end=False) if isinstance(event, LogLine)]
        except UnavailableError as error:
            end(ExitCode.UNKNOWN, f"Could not tell: {error}", as_json=True)
        print_json([vars(line) for line in lines])
        return
    last = follow_job(
        follower, quiet=False, to_the_end=follow, when_interrupted="Interrupted." if state.is_over else ""
    )
    if follow or last is None:
        raise click.exceptions.Exit(job_exit_code(last))

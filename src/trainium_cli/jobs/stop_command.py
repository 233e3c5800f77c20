"""`trn stop`: ends a job on all its nodes."""

from datetime import UTC, datetime
from pathlib import Path

import click

from trainium_cli.exit_codes import ExitCode
from trainium_cli.jobs.job_cluster import end, job_cluster_options, known_job, read_cluster
from trainium_cli.jobs.job_following import follow_job
from trainium_cli.terminal import print_json, say
from trainium_core.jobs.follow import JobFollower
from trainium_runtime.errors import RequestRefusedError

_GOES_ON = (
    "Interrupted: the nodes end {0} by themselves, and are billed as before. `trn jobs {0}` shows when they have."
)


@click.command()
@click.argument("job", required=False)
@click.option("--detach", is_flag=True, help="Do not wait until it has ended.")
@job_cluster_options
def stop(
    job: str | None, detach: bool, overrides: tuple[str, ...], cdk_json: Path | None, as_json: bool, stack: str | None
) -> None:
    """End a job on all its nodes.

    Default: the one that runs. Its processes are signalled to end, and killed when they have not within seconds. Whole
    checkpoints and outputs are kept: `trn run --resume JOB` goes on from them. A job that is over is left as it is.

    Exit code 0: it has ended. 1: there is no such job, or it was not stopped. 3: could not tell. 130: not
    waited for, by Ctrl-C.
    """
    _, jobs = read_cluster(cdk_json, overrides, stack, as_json=as_json)
    state = known_job(jobs, job, as_json=as_json)
    if not state.is_over:
        try:
            jobs.stop(state.job.id, "trn stop", f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}")
        except RequestRefusedError as error:
            end(ExitCode.NOT_READY, f"It was not stopped: {error}", as_json=as_json)
        if detach:
            next_step = f"`trn jobs {state.job.id}` shows when they have"
            click.echo(f"Asked the nodes to end {state.job.id}; {next_step}.", err=True)
            return
        last = follow_job(JobFollower(state.job.id, jobs), quiet=True, when_interrupted=_GOES_ON.format(state.job.id))
        if last is None:
            raise click.exceptions.Exit(ExitCode.UNKNOWN)
        state = last
    if as_json:
        print_json({"job": state.job.id, "status": state.status})
    else:
        say(f"{state.job.id} is over: {state.status}.")

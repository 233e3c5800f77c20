"""`trn logs`: the output of a job."""

from typing import Any

import click

from trainium_cli.exit_codes import ExitCode
from trainium_cli.invocation import Invocation, pass_invocation, plan_options
from trainium_cli.jobs.job_engines import engine_options, read_engines
from trainium_cli.jobs.job_following import final_state, follow_job, job_exit_code, show_reason
from trainium_cli.terminal import print_json
from trainium_core.jobs.engine import check_keys
from trainium_core.jobs.follow import JobFollower, LogLine


@click.command()
@click.argument("job", required=False)
@click.option("--rank", metavar="NUMBER", type=click.IntRange(min=0), help="Show only the lines of this process.")
@click.option("--node", metavar="NUMBER", type=click.IntRange(min=0), help="Show all lines of this node.")
@click.option(
    "--attempt", metavar="NUMBER", type=click.IntRange(min=1), help="Show the lines of this attempt. Default: all."
)
@click.option("--follow", is_flag=True, help="Follow the job until it ends; the exit code is its result.")
@engine_options
@plan_options
@pass_invocation
def logs(
    invocation: Invocation, job: str | None, on: str | None, stack: str | None, follow: bool, **choice: Any
) -> ExitCode:
    """Show what a job has printed.

    JOB is a job ID. Default: the last job. Without --rank and --node: the lines of rank 0 and the tracebacks of the
    other processes on its node; for a job file with `command` instead of a script, the lines of the first node; on
    SageMaker, those of all nodes.

    Exit code with --follow: as for `trn run`. Otherwise 0: shown. 1: no job has this ID, or no cluster is deployed. 3:
    unknown. 130: interrupted by Ctrl-C.
    """
    if invocation.as_json and follow:
        raise click.UsageError("--json does not follow: omit --follow")
    engine, state = read_engines(invocation, on, stack).known(job)
    options = {name: str(value) for name, value in choice.items() if value is not None}
    check_keys(engine, options, {name: f"--{name}" for name in options})
    rank, nodes = choice["rank"], state.job.nodes
    processes = nodes * state.job.processes_per_node
    if choice["node"] is not None and (rank is not None or choice["node"] >= nodes):
        got = "both --rank and --node" if rank is not None else f"--node {choice['node']}"
        raise click.UsageError(f"--node: got {got}\n    allowed: 0 to {nodes - 1}, without --rank")
    if rank is not None and not state.job.has_ranks:
        raise click.UsageError(
            "--rank: the job is a command, whose processes have no known ranks\n    fix: specify --node"
        )
    if rank is not None and rank >= processes:
        raise click.UsageError(f"--rank: got {rank}\n    allowed: 0 to {processes - 1}, the job's processes")
    follower = JobFollower(state.job.id, engine, state=state, **choice)
    if invocation.as_json:
        print_json([vars(event) for event in follower.events(to_the_end=False) if isinstance(event, LogLine)])
        return ExitCode.OK
    last = follow_job(
        follower, quiet=False, to_the_end=follow, when_interrupted="Interrupted." if state.is_over else ""
    )
    if last is not None:
        show_reason(engine, final_state(engine, last))
    return job_exit_code(last) if follow or last is None else ExitCode.OK

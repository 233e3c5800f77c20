"""`trn jobs`: lists the jobs of a cluster, or shows one with the time of each phase."""

from pathlib import Path

import click

from trainium_cli.exit_codes import ExitCode
from trainium_cli.invocation import Invocation, pass_invocation, plan_options
from trainium_cli.jobs.job_engines import JobEngines, engine_options, read_engines
from trainium_cli.jobs.job_files import fetch_outputs
from trainium_cli.jobs.job_following import show_reason
from trainium_cli.jobs.job_report import job_record, jobs_table, show_state, state_as_json
from trainium_cli.terminal import console, print_json, say
from trainium_cli.waiting import waiting
from trainium_core.aws.identity import AwsIdentities


@click.command()
@click.argument("job", required=False)
@click.option("--outputs", type=click.Path(path_type=Path), help="Fetch the outputs of JOB into PATH/JOB.")
@click.option(
    "--most",
    metavar="NUMBER",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Number of jobs to list, newest first.",
)
@click.option("--mine", is_flag=True, help="Of these, list the jobs that the current AWS credentials submitted.")
@click.option("--record", is_flag=True, help="Print the record of JOB: one line of JSON for each phase and event.")
@engine_options
@plan_options
@pass_invocation
def jobs(
    invocation: Invocation,
    job: str | None,
    on: str | None,
    stack: str | None,
    outputs: Path | None,
    most: int,
    mine: bool,
    record: bool,
) -> ExitCode:
    """List the jobs of the cluster, or show one with the time of each phase.

    JOB is a job ID.

    Exit code 0: shown, even if outputs could not be fetched. 1: no job has this ID, or no cluster is deployed. 3:
    unknown.
    """
    if outputs and job is None:
        raise click.UsageError("--outputs requires a JOB")
    if record and job is None:
        raise click.UsageError("--record requires a JOB")
    if mine and job is not None:
        raise click.UsageError("--mine lists jobs: omit JOB")
    engines = read_engines(invocation, on, stack)
    if job is None:
        _list(invocation, engines, most=most, mine=mine)
        return ExitCode.OK
    engine, state = engines.known(job, every_node=True)
    with waiting("Asking AWS for prices ..."):
        hourly = engine.hourly(state)
    if record:
        for line in job_record(state, hourly):
            print_json(line, indent=None)
    elif invocation.as_json:
        print_json({"engine": engine.key, **state_as_json(state, job_record(state, hourly))})
    else:
        show_state(state, hourly, is_aws=invocation.reaches_aws(engines.plan.region))
        show_reason(engine, state, err=False)
    if outputs is not None:
        fetch_outputs(engine.store, job, outputs)
    return ExitCode.OK


def _list(invocation: Invocation, engines: JobEngines, *, most: int, mine: bool) -> None:
    found, nothing = (
        engines.newest(most, brief=not invocation.as_json),
        "No job has been started: `trn run` starts one.",
    )
    if found and mine:
        own = AwsIdentities(engines.plan.region, clients=invocation.clients).identity()
        found = [(engine, state) for engine, state in found if state.job.submitted_by == own.name]
        nothing = f"{own.name} submitted none of the last jobs: `trn jobs` lists all."
        if own.has_generated_session:
            nothing += " The session of your role has no name: set role_session_name in your AWS profile."
    if invocation.as_json:
        print_json([{"engine": engine.key, **state_as_json(state)} for engine, state in found])
    elif found:
        console().print(jobs_table([(engine.key, state) for engine, state in found]))
    else:
        say(nothing)

"""Starting a job on a cluster that is ready for one, and showing how it ends."""

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import click

from trainium_cli.exit_codes import ExitCode
from trainium_cli.job_cluster import cluster_jobs, end, no_stack
from trainium_cli.job_following import follow_job
from trainium_cli.job_report import attempt_lines, phases_table, state_as_json, state_rows, submission_rows
from trainium_cli.plan_options import refuse
from trainium_cli.terminal import console, pairs, print_json
from trainium_cli.waiting import waiting
from trainium_core.costs.estimate import Total, estimate
from trainium_core.jobs.aws_jobs import AwsJobs, CurrentJob
from trainium_core.jobs.follow import JobFollower
from trainium_core.jobs.job import Job
from trainium_core.jobs.problems import JobError, JobProblem
from trainium_core.jobs.progress import JobState
from trainium_core.jobs.source_package import SourcePackage
from trainium_core.nodes.aws_nodes import AwsNodes
from trainium_core.nodes.report import nodes_report
from trainium_core.plan import Plan
from trainium_core.prices.aws_prices import AwsPrices
from trainium_runtime.errors import RequestRefusedError, UnavailableError


def submit_and_follow(
    plan: Plan, stack: str, job: Job, package: SourcePackage, *, detach: bool, as_json: bool
) -> JobState | None:
    """Start a job and show it until it is over; None when it goes on. Ends the command where it is not started."""
    try:
        with waiting(f"Asking AWS for the nodes of {stack} ..."):
            jobs, current = _ready_cluster(plan, stack, job, as_json=as_json)
            hourly = estimate(plan, aws=AwsPrices(plan.region)).running_hour
        if not as_json:
            console().print(pairs(submission_rows(plan, job, package, hourly), label_width=11))
        with waiting("Uploading the source ..."):
            started = jobs.submit(job, package.archive, over=current)
    except UnavailableError as error:
        end(ExitCode.COULD_NOT_TELL, f"Nothing was started: {error}", as_json=as_json)
    except RequestRefusedError as error:
        end(ExitCode.NOT_READY, f"Nothing was started: {error}", as_json=as_json)
    if not started:
        end(ExitCode.NOT_READY, "Nothing was started: somebody else started a job just now.", as_json=as_json)
    click.echo(f"Started {job.id}.", err=True)
    if detach:
        if as_json:
            print_json({"started": True, "job": asdict(job)})
        click.echo(f"`trn logs {job.id} --follow` follows it.", err=True)
        return None
    state = follow_job(JobFollower(job.id, jobs), quiet=as_json)
    if state is not None:
        _show_end(jobs, state, hourly, as_json=as_json)
    return state


def _ready_cluster(plan: Plan, stack: str, job: Job, *, as_json: bool) -> tuple[AwsJobs, CurrentJob | None]:
    """The jobs of a cluster whose nodes are all proven and run none; ends the command otherwise."""
    jobs = cluster_jobs(plan, stack)
    deployed = AwsNodes(plan.region).nodes(stack)
    if jobs is None or deployed is None:
        end(ExitCode.NOT_READY, no_stack(plan, stack), as_json=as_json)
    report = nodes_report(deployed, replacements=plan.node.replacements if plan.node.recovery else 0)
    if report.asleep:
        told = f"{plan.cluster_name} is asleep: `trn run --wake` wakes it, and puts it to sleep after the job."
        end(ExitCode.NOT_READY, told, as_json=as_json)
    if report.verdict.state != "ready":
        told = f"Nothing was started, since not all nodes are proven: {report.verdict.reason}. See `trn nodes`."
        end(ExitCode.NOT_READY, told, as_json=as_json)
    if job.nodes > len(report.roster.members):
        told = (
            f"Nothing was started: the cluster has {len(report.roster.members)} nodes, and the job wants {job.nodes}."
        )
        end(ExitCode.NOT_READY, told, as_json=as_json)
    current = jobs.current()
    state = jobs.state(current.job.id) if current else None
    if state is not None and not state.is_over:
        told = (
            f"{state.job.id} runs on this cluster ({state.status}), and one job runs at a time. "
            f"`trn logs {state.job.id} --follow` follows it, `trn stop {state.job.id}` ends it."
        )
        end(ExitCode.NOT_READY, f"Nothing was started: {told}", as_json=as_json)
    if job.resume_from and not jobs.checkpoints(job.resume_from):
        known = jobs.job_ids()
        there = "has no whole checkpoint" if job.resume_from in known else "is no job of this cluster"
        problem = JobProblem(
            key="--resume",
            got=job.resume_from,
            allowed=", ".join(sorted(known)) or "none: the cluster knows no job",
            fix=f"{job.resume_from} {there}: leave --resume out, or name another",
        )
        refuse(JobError([problem]), as_json=as_json)
    return jobs, current


def _show_end(jobs: AwsJobs, state: JobState, hourly: Total, *, as_json: bool) -> None:
    with suppress(UnavailableError):
        state = jobs.state(state.job.id, every_node=True) or state
    if as_json:
        print_json(state_as_json(state))
        return
    if state.outcome and state.outcome.traceback:
        click.echo(f"\n{state.outcome.traceback}")
    console().print()
    console().print(pairs(state_rows(state, hourly), label_width=11))
    for line in attempt_lines(state):
        click.echo(f" {line}")
    phases = phases_table(state)
    if phases is not None:
        console().print()
        console().print(phases)


def fetch_outputs(plan: Plan, stack: str, job_id: str, folder: Path) -> None:
    """Fetch what a job has left into a folder, and say how much; says why when that fails."""
    try:
        jobs = cluster_jobs(plan, stack)
        fetched = _download(jobs, job_id, folder) if jobs else []
    except (UnavailableError, OSError) as error:
        click.echo(f"The outputs were not fetched: {error}", err=True)
        return
    click.echo(f"{len(fetched)} files of {job_id} are in {folder}.", err=True)


def _download(jobs: AwsJobs, job_id: str, folder: Path) -> list[Path]:
    """Names that lead out of the folder are left out: any process of a node can choose them."""
    root, fetched = folder.resolve(), list[Path]()
    for name in jobs.outputs(job_id):
        path = (root / name).resolve()
        if path.is_relative_to(root) and path != root:
            path.parent.mkdir(parents=True, exist_ok=True)
            jobs.download_output(job_id, name, str(path))
            fetched.append(path)
    return fetched

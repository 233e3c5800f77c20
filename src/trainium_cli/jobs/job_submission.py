"""Starting a job on a cluster that is ready for one, and showing how it ends."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import click

from trainium_cli.cluster_selection import command_clients
from trainium_cli.exit_codes import ExitCode
from trainium_cli.jobs.job_cluster import cluster_jobs, end, no_stack
from trainium_cli.jobs.job_files import download
from trainium_cli.jobs.job_following import follow_job
from trainium_cli.jobs.job_report import job_record, show_state, state_as_json, submission_rows
from trainium_cli.plan_options import refuse
from trainium_cli.terminal import console, pairs, print_json
from trainium_cli.waiting import waiting
from trainium_core.costs.estimate import Total, estimate
from trainium_core.jobs.aws_jobs import AwsJobs, CurrentJob
from trainium_core.jobs.follow import JobFollower
from trainium_core.jobs.problems import JobError, JobProblem
from trainium_core.jobs.progress import JobState
from trainium_core.jobs.source_files import files_below
from trainium_core.jobs.source_package import SourcePackage
from trainium_core.nodes.aws_nodes import AwsNodes
from trainium_core.nodes.report import nodes_report
from trainium_core.plan import Plan
from trainium_core.prices.aws_prices import AwsPrices
from trainium_runtime.errors import RequestRefusedError, UnavailableError
from trainium_wire.job import Job


@dataclass(frozen=True, kw_only=True)
class ReadyCluster:
    """A cluster whose nodes are all proven and run no job. members: their instance ids, in the order of ranks.

    current: the job before, if there was one.
    """

    jobs: AwsJobs
    current: CurrentJob | None
    members: Sequence[str]


def submit_and_follow(
    plan: Plan,
    stack: str,
    job: Job,
    package: SourcePackage,
    *,
    uploads: Mapping[str, Path],
    detach: bool,
    as_json: bool,
) -> JobState | None:
    """Start a job and show it until it is over; None when it goes on. Ends the command where it is not started."""
    hourly = estimate(plan, aws=AwsPrices(plan.region, clients=command_clients())).running_hour

    def show() -> None:
        if not as_json:
            console().print(pairs(submission_rows(plan, job, package, hourly), label_width=11))

    jobs = submit(plan, stack, job, package, uploads=uploads, as_json=as_json, show=show)
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


def submit(
    plan: Plan,
    stack: str,
    job: Job,
    package: SourcePackage,
    *,
    uploads: Mapping[str, Path],
    as_json: bool,
    show: Callable[[], None] = lambda: None,
) -> AwsJobs:
    """Start a job on a cluster that is ready for it. Ends the command where it is not started.

    show: called before anything is uploaded.
    """
    try:
        with waiting(f"Asking AWS for the nodes of {stack} ..."):
            ready = ready_cluster(plan, stack, as_json=as_json)
            _check_nodes(job, ready, as_json=as_json)
            job = _resumed(job, ready.jobs, as_json=as_json)
        show()
        for path in uploads.values():
            _say_what_is_left_out(path)
        with waiting("Uploading ..."):
            started = ready.jobs.submit(job, package.archive, over=ready.current, uploads=uploads)
    except JobError as error:
        refuse(error, as_json=as_json)
    except UnavailableError as error:
        end(ExitCode.UNKNOWN, f"Nothing was started: {error}", as_json=as_json)
    except RequestRefusedError as error:
        end(ExitCode.NOT_READY, f"Nothing was started: {error}", as_json=as_json)
    if not started:
        end(ExitCode.NOT_READY, "Nothing was started: somebody else started a job just now.", as_json=as_json)
    return ready.jobs


def _resumed(job: Job, jobs: AwsJobs, *, as_json: bool) -> Job:
    """The job with the id of the one whose checkpoint it goes on from: an earlier one, if what it resumes saved none.

    Ends the command where there is no checkpoint, or one of another number of processes. Raises UnavailableError.
    """
    earlier = job.resume_from
    if earlier is None:
        return job
    owner, checkpoints = jobs.resumable(earlier, job.checkpoints)
    if not checkpoints:
        known = jobs.job_ids()
        there = "has no whole checkpoint" if earlier in known else "is no job of this cluster"
        where = f" in {job.checkpoints}" if job.checkpoints else ""
        problem = JobProblem(
            key="--resume",
            got=earlier,
            allowed=", ".join(sorted(known)) or "none: the cluster knows no job",
            fix=f"{earlier} {there}{where}: leave --resume out, or name another",
        )
        refuse(JobError([problem]), as_json=as_json)
    saved_by, wanted = jobs.world_size(owner, checkpoints[-1], job.checkpoints), job.nodes * job.processes_per_node
    if saved_by not in (None, wanted):
        problem = JobProblem(
            key="--resume",
            got=f"{owner}, whose checkpoint {checkpoints[-1]} was saved by {saved_by} processes",
            allowed=f"a checkpoint of {wanted} processes, as many as this job has",
            fix="run it with as many, or convert the checkpoint",
        )
        refuse(JobError([problem]), as_json=as_json)
    if owner != earlier:
        click.echo(f"{earlier} saved no checkpoint: {job.id} goes on from {checkpoints[-1]} of {owner}.", err=True)
    return replace(job, resume_from=owner)


def _say_what_is_left_out(path: Path) -> None:
    """Raises JobError for what cannot be read."""
    if not path.is_dir():
        return
    left_out = files_below(path).left_out
    if left_out:
        click.echo(f"Left out of {path}: {', '.join(f'{name} ({why})' for name, why in left_out.items())}", err=True)


def ready_cluster(plan: Plan, stack: str, *, as_json: bool) -> ReadyCluster:
    """Ends the command where the cluster is not ready. Raises UnavailableError."""
    account = AwsNodes(plan.region, clients=command_clients())
    jobs, deployed = cluster_jobs(plan, stack, account=account), account.nodes(stack)
    if jobs is None or deployed is None:
        end(ExitCode.NOT_READY, no_stack(plan, stack), as_json=as_json)
    report = nodes_report(deployed, replacements=plan.node.replacements if plan.node.recovery else 0)
    if report.asleep:
        message = f"{plan.cluster_name} is asleep: `trn run --wake` wakes it, and puts it to sleep after the job."
        end(ExitCode.NOT_READY, message, as_json=as_json)
    if report.verdict.state != "ready":
        message = f"Nothing was started, since not all nodes are proven: {report.verdict.reason}. See `trn nodes`."
        end(ExitCode.NOT_READY, message, as_json=as_json)
    current = jobs.current()
    state = None if current is None or jobs.has_ended(current.job.id) else jobs.state(current.job.id)
    if state is not None and not state.is_over:
        message = (
            f"{state.job.id} runs on this cluster ({state.status}), and one job runs at a time. "
            f"`trn logs {state.job.id} --follow` follows it, `trn stop {state.job.id}` ends it."
        )
        end(ExitCode.NOT_READY, f"Nothing was started: {message}", as_json=as_json)
    return ReadyCluster(jobs=jobs, current=current, members=[one.instance_id for one in report.membership.members])


def _check_nodes(job: Job, ready: ReadyCluster, *, as_json: bool) -> None:
    there = len(ready.members)
    if job.nodes > there:
        message = f"Nothing was started: the cluster has {there} nodes, and the job wants {job.nodes}."
        end(ExitCode.NOT_READY, message, as_json=as_json)


def _show_end(jobs: AwsJobs, state: JobState, hourly: Total, *, as_json: bool) -> None:
    with suppress(UnavailableError):
        state = jobs.state(state.job.id, every_node=True) or state
    if as_json:
        print_json(state_as_json(state, job_record(state, hourly)))
        return
    if state.outcome and state.outcome.traceback:
        click.echo(f"\n{state.outcome.traceback}")
    console().print()
    show_state(state, hourly)


def fetch_outputs(plan: Plan, stack: str, job_id: str, folder: Path) -> None:
    """Fetch what a job has left into a folder, and say how much; says why when that fails."""
    try:
        jobs = cluster_jobs(plan, stack)
        fetched = download(jobs, job_id, "outputs", folder) if jobs else []
    except (UnavailableError, OSError) as error:
        click.echo(f"The outputs were not fetched: {error}", err=True)
        return
    click.echo(f"{len(fetched)} files of {job_id} are in {folder}.", err=True)

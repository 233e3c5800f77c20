"""Starts the precompile host, follows its job, and ends the host."""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.invocation import Invocation
from trainium_cli.jobs.job_engines import asking
from trainium_cli.jobs.job_following import follow_job
from trainium_cli.jobs.job_report import attempt_lines, job_record, seconds_of, source_row, state_as_json
from trainium_cli.jobs.job_submission import nothing_started
from trainium_cli.quantities import duration, size
from trainium_cli.terminal import console, echo, pairs, print_json
from trainium_cli.waiting import waiting
from trainium_core.costs.estimate import Total, dollars, estimate, precompile_host_hour
from trainium_core.engines.ec2.aws_jobs import Ec2Jobs, PreparedClusterJob
from trainium_core.facts import facts
from trainium_core.jobs.aws_jobs import AwsJobs
from trainium_core.jobs.engine import NotStartedError
from trainium_core.jobs.follow import JobFollower
from trainium_core.jobs.precompile import earlier_compilation, precompile_job
from trainium_core.jobs.progress import JobState
from trainium_core.jobs.request import JobRequest
from trainium_core.jobs.source_package import SourcePackage
from trainium_core.naming import precompile_group_name
from trainium_core.nodes.aws_precompile_host import AwsPrecompileHost
from trainium_core.plan import Plan
from trainium_core.prices.aws_prices import AwsPrices
from trainium_runtime.errors import RequestRefusedError, UnavailableError
from trainium_wire.job import Job
from trainium_wire.keys import PRECOMPILE_JOB_KEY

_POLL_SECONDS = 15
_HOUR = 3600


class HostGoneError(Exception):
    """The host ended, or did not start, before its job ended."""


class HostWatch:
    """Watches the host while its job is followed. `pause` raises HostGoneError."""

    def __init__(self, host: AwsPrecompileHost, since: datetime) -> None:
        self._host, self._since = host, since
        self._instance: str | None = None
        self._was_unwanted = False
        self._polled_at = time.monotonic()

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)
        if time.monotonic() - self._polled_at < min(_POLL_SECONDS, 5 * seconds):
            return
        self._polled_at = time.monotonic()
        with suppress(UnavailableError):
            self._poll()

    def _poll(self) -> None:
        state = self._host.state(since=self._since)
        if state is None:
            raise HostGoneError("the Auto Scaling group of the host was deleted")
        self._instance = next(iter(state.instances), self._instance)
        if state.refusal:
            raise HostGoneError(f"EC2 did not launch a host: {state.refusal}")
        # The job may have just ended: the follower reads its state once more before the next poll.
        if not state.wanted and self._was_unwanted:
            reason = self._host.failure(self._instance) if self._instance else ""
            raise HostGoneError(reason or "the host was terminated before its job ended")
        self._was_unwanted = not state.wanted


def precompile_first(
    invocation: Invocation, cluster: Ec2Jobs, job: PreparedClusterJob, request: JobRequest, *, yes: bool
) -> None:
    """Compile the graphs of a job, unless an earlier job seems to have compiled them.

    Raises:
        CliError: The compilation was not started, is incomplete, or its result is unknown.
        Exit: The start was not confirmed, or Ctrl-C ended the command.
        JobError: The job cannot be precompiled.
    """
    package = job.package
    ahead = precompile_job(
        cluster.plan, request, script=package.script or None, now=datetime.now(UTC), source_sha256=package.digest
    )
    with nothing_started(), asking(invocation, cluster.plan, "Asking S3 for earlier jobs ..."):
        earlier = earlier_compilation(job.job, ahead, cluster.bucket_jobs)
    if earlier is not None:
        echo(f"Not precompiled: {earlier} seems to have compiled the same graphs.", err=True)
        return
    state = precompile_and_follow(invocation, cluster, ahead, package, uploads=request.uploads, yes=yes)
    if state is None or state.outcome is None or not state.outcome.is_success:
        left = "the graphs compiled so far are in the cache; `trn run` without --precompile uses them"
        what = "the result of the compilation is unknown" if state is None else "the compilation is incomplete"
        message = f"The job was not started, because {what}: {left}."
        raise CliError(message, ExitCode.NOT_READY)


def precompile_and_follow(
    invocation: Invocation,
    cluster: Ec2Jobs,
    job: Job,
    package: SourcePackage,
    *,
    uploads: Mapping[str, Path],
    detach: bool = False,
    yes: bool,
) -> JobState | None:
    """Start a host for a job, and follow the job until it ends.

    Args:
        invocation: The options that select the cluster.
        cluster: The jobs of the cluster.
        job: The job that compiles.
        package: The packed source.
        uploads: Local inputs of the job, by name.
        detach: Do not follow the job.
        yes: Do not prompt.

    Returns:
        The last state; None with `detach`, or if the state is unknown.

    Raises:
        CliError: No host was started, or the host ended before its job.
        Exit: The start was not confirmed, or Ctrl-C ended the command.
        JobError: The job is invalid.
    """
    plan, as_json = cluster.plan, invocation.as_json
    with waiting("Asking AWS for prices ..."):
        hourly = precompile_host_hour(plan, estimate(plan, aws=AwsPrices(plan.region, clients=cluster.clients)))
    assert job.time_limit_seconds is not None, "a job of the host has one"
    now = datetime.now(UTC)
    until = now + timedelta(seconds=job.time_limit_seconds, minutes=facts()["precompile"]["end_minutes"])
    with nothing_started():
        with asking(invocation, plan, f"Asking AWS for the host of {cluster.stack} ..."):
            jobs, host = _free_host(cluster)
            current = jobs.current()
        if not as_json:
            console().print(pairs(_rows(plan, job, package, hourly, until), label_width=11))
        if not yes and not click.confirm("\nStart it?"):
            raise click.exceptions.Exit(ExitCode.NOT_READY)
        with waiting("Uploading ..."):
            started = jobs.submit(job, package.archive, over=current, uploads=uploads)
        if not started:
            raise NotStartedError("another host was started at the same time.")
        try:
            host.start(until)
        except RequestRefusedError as error:
            jobs.close(job.id, f"no host was started: {error}")
            raise
    latest = f"{until:%Y-%m-%d %H:%M} UTC"
    echo(f"Started a host for {job.id}. The host ends with the job, at {latest} at the latest.", err=True)
    if detach:
        if as_json:
            print_json({"started": True, "job": asdict(job)})
        echo(f"`trn logs {job.id} --follow` follows it.", err=True)
        return None
    return _follow(jobs, host, job, hourly, now, as_json=as_json)


def _free_host(cluster: Ec2Jobs) -> tuple[AwsJobs, AwsPrecompileHost]:
    """The jobs of the host, and the host. Raises NotStartedError if no host can start, and the errors of Ec2Jobs."""
    plan, bucket = cluster.plan, cluster.bucket_jobs.bucket
    jobs = AwsJobs(plan.region, bucket, clients=cluster.clients, current_key=PRECOMPILE_JOB_KEY)
    group = precompile_group_name(cluster.stack, plan.cluster_name)
    host = AwsPrecompileHost(plan.region, group, bucket, clients=cluster.clients)
    state = host.state()
    if state is None:
        added = "`trn deploy` with trn:precompile_instance_type adds it"
        raise NotStartedError(f"{cluster.stack} was deployed without a host: {added}.")
    if not state.is_gone:
        current = jobs.current()
        whose = f" for {current.job.id}" if current else ""
        ends = "it ends within minutes after its job; `trn stop` ends the job"
        raise NotStartedError(f"the host already exists{whose}; {ends}.")
    return jobs, host


def _follow(
    jobs: AwsJobs, host: AwsPrecompileHost, job: Job, hourly: Total, since: datetime, *, as_json: bool
) -> JobState | None:
    watch = HostWatch(host, since)
    try:
        state = follow_job(JobFollower(job.id, jobs, pause=watch.pause), quiet=as_json)
    except HostGoneError as error:
        with suppress(RequestRefusedError):
            jobs.close(job.id, str(error))
        _end(host)
        raise CliError(f"Not compiled: {error}.", ExitCode.NOT_READY) from error
    if state is None:
        return None
    _end(host)
    with suppress(UnavailableError):
        state = jobs.state(job.id, every_node=True) or state
    if as_json:
        print_json(state_as_json(state, job_record(state, hourly)))
        return state
    if state.outcome and state.outcome.traceback:
        echo(f"\n{state.outcome.traceback}")
    console().print()
    console().print(pairs(_result_rows(state, hourly), label_width=11))
    for line in attempt_lines(state, hourly):
        echo(f" {line}")
    return state


def _end(host: AwsPrecompileHost) -> None:
    """End the host immediately. Otherwise a Lambda function ends it after its job."""
    try:
        host.end()
    except RequestRefusedError as error:
        echo(
            f"This command could not end the host ({error}). It is terminated when it reports the end of its job.",
            err=True,
        )


def _rows(plan: Plan, job: Job, package: SourcePackage, hourly: Total, until: datetime) -> list[tuple[str, str]]:
    return [
        ("job", job.id),
        ("host", f"{plan.cache.precompile_instance_type}, {_price(hourly)}, ends at {until:%H:%M} UTC at the latest"),
        ("for", f"{plan.instance_type}, {job.processes_per_node} processes"),
        source_row(package),
        ("command", job.command),
    ]


def _price(hourly: Total) -> str:
    return f"{hourly} per hour" if hourly.usd else "price unknown"


def _result_rows(state: JobState, hourly: Total) -> list[tuple[str, str]]:
    uses = [use for attempt in state.attempts[-1:] for node in attempt.nodes[:1] for use in node.caches]
    seconds = seconds_of(state)
    cost = _price(hourly) if hourly.unknown else dollars(hourly.usd * int(seconds) / _HOUR)
    rows = [("job", state.job.id), ("status", state.status), ("reason", state.outcome.reason if state.outcome else "")]
    for use in uses:
        if not use.place:
            continue
        failed = f", {len(use.failed)} failed" if use.failed else ""
        compiled = (
            f"{use.misses - len(use.failed)} modules compiled{failed}, {use.compile_seconds:.0f} s of compilation"
        )
        stored = f"{size(use.stored_bytes)} stored, {use.at_start} modules were stored before"
        rows.append((use.stack, f"{compiled}, {stored}"))
        rows.append(("place", use.place))
    rows += [("warning", text) for use in uses for text in (*use.warnings, *use.failed)]
    if not any(use.misses or use.at_start for use in uses):
        rows.append(("warning", _NOTHING))
    return [*((name, text) for name, text in rows if text), ("host", f"{duration(seconds)}, {cost}")]


_NOTHING = (
    "no graph was compiled: the output of the command shows the reason. If the command cannot compile without a "
    "Neuron device, use `trn run`, which stores the graphs that the nodes compile"
)

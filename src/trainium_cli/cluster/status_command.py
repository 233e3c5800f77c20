"""`trn status`: the cluster on one screen."""

from collections.abc import Collection
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path

import click

from trainium_cli.cluster.status_report import status_as_json, status_rows
from trainium_cli.cluster_selection import others_sentence, read_cluster_plan, stack_of_cluster, stack_option
from trainium_cli.exit_codes import ExitCode
from trainium_cli.jobs.job_cluster import end
from trainium_cli.plan_options import IRRELEVANT_LATER, plan_options
from trainium_cli.terminal import console, pairs, print_json
from trainium_cli.waiting import waiting
from trainium_core.clusters.absence import absence
from trainium_core.clusters.aws_absence import AwsAbsences
from trainium_core.clusters.aws_account import AwsClustersAccount
from trainium_core.clusters.cluster import clusters_in
from trainium_core.clusters.status import ClusterStatus, JobStatus, cluster_status
from trainium_core.jobs.aws_jobs import AwsJobs
from trainium_core.naming import PRECOMPILE_JOB_KEY
from trainium_core.nodes.aws_nodes import AwsNodes
from trainium_core.nodes.aws_usage import AwsUsage
from trainium_core.plan import Plan
from trainium_core.stacks.aws_events import AwsStackEvents
from trainium_runtime.errors import UnavailableError
from trainium_runtime.naming import CURRENT_JOB_KEY
from trainium_runtime.usage import ClusterUsage


@click.command()
@plan_options
@stack_option
def status(overrides: tuple[str, ...], cdk_json: Path | None, as_json: bool, stack: str | None) -> None:
    """Show the cluster on one screen.

    Its state, its nodes, what they cost by the hour now, the end, whether anybody uses them, the replacements that are
    used, the job, and what happened to its stack last. What cannot be read is named.

    Exit code 0: every node is proven, or the cluster is to have none. 1: not so, or not deployed. 3: could not tell.
    """
    plan = read_cluster_plan(cdk_json, overrides, as_json=as_json, ignoring=IRRELEVANT_LATER)
    stack = stack_of_cluster(plan, stack)
    try:
        with waiting(f"Asking AWS for {plan.cluster_name} in {plan.region} ..."):
            found = _read(plan, stack)
    except UnavailableError as error:
        end(ExitCode.UNKNOWN, f"Could not tell: {error}", as_json=as_json)
    if found is None:
        message = f"{plan.cluster_name} is not deployed in {plan.region}.{others_sentence(plan)}"
        end(ExitCode.NOT_READY, message, as_json=as_json)
    if as_json:
        print_json(status_as_json(found))
    else:
        rows = status_rows(found, now=datetime.now(UTC), idle_minutes=plan.pilot.idle_minutes)
        console().print(f"{plan.cluster_name} in {plan.region}", style="bold")
        console().print(pairs(rows, label_width=max(len(label) for label, _ in rows)))
    unread = ExitCode.UNKNOWN if found.not_read else ExitCode.OK
    raise click.exceptions.Exit(unread if found.is_well else ExitCode.NOT_READY)


def _read(plan: Plan, stack: str) -> ClusterStatus | None:
    account = AwsClustersAccount(plan.region)
    listed = clusters_in(plan.region, account, prices=plan.prices)
    cluster = next((one for one in listed.clusters if one.name == plan.cluster_name), None)
    if cluster is None:
        return None

    @cache
    def records_bucket() -> str | None:
        deployed = account.deployed_stack(stack)
        return account.fleet_resources(stack, deployed).records_bucket if deployed else None

    def usage(instances: Collection[str]) -> ClusterUsage | None:
        bucket = records_bucket()
        return AwsUsage(plan.region).usage(bucket, instances, now=datetime.now(UTC)) if bucket else None

    def job(key: str = CURRENT_JOB_KEY) -> JobStatus | None:
        bucket = records_bucket()
        jobs = AwsJobs(plan.region, bucket, current_key=key) if bucket else None
        current = jobs.current() if jobs else None
        state = jobs.state(current.job.id) if jobs and current else None
        return JobStatus(job_id=state.job.id, status=state.status) if state else None

    return cluster_status(
        cluster,
        stack,
        nodes=AwsNodes(plan.region),
        events=AwsStackEvents(plan.region),
        job=job,
        precompilation=partial(job, PRECOMPILE_JOB_KEY),
        usage=usage,
        absence=lambda: absence(cluster, AwsAbsences(plan.region), datetime.now(UTC)),
        replacements=plan.node.replacements if plan.node.recovery else 0,
    )

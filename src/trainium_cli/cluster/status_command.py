"""`trn status`: the cluster on one screen."""

from collections import Counter
from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from statistics import fmean
from typing import Any

import click

from trainium_cli.cluster_choice import cluster_stack_name, others_sentence, read_cluster_plan
from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.invocation import Invocation, pass_invocation, plan_options, stack_option
from trainium_cli.quantities import duration, number_text, percent
from trainium_cli.terminal import console, pairs, print_json
from trainium_cli.waiting import waiting
from trainium_core.clusters.absence import absence
from trainium_core.clusters.aws_account import AwsAbsences, AwsClustersAccount
from trainium_core.clusters.cluster import Cluster, clusters_in
from trainium_core.clusters.status import ClusterStatus, JobStatus, cluster_status
from trainium_core.engines.registry import ENGINES, ENGINES_WITH_NODES
from trainium_core.jobs.aws_job_store import JobStore
from trainium_core.nodes.aws_nodes import AwsNodes, AwsUsage
from trainium_core.nodes.report import NodesReport, report_as_json
from trainium_core.plan import Plan
from trainium_core.plan.pilot_end import minute_text
from trainium_core.prices.price import CAPACITY_BLOCK
from trainium_core.stacks.aws_events import AwsStackEvents
from trainium_runtime.aws_service import Clients
from trainium_runtime.pilot_end import utc_text
from trainium_runtime.usage import ClusterUsage, LastJob
from trainium_wire.metric_sample import NOT_MEASURED, known_sum


@click.command()
@stack_option
@plan_options
@pass_invocation
def status(invocation: Invocation, stack: str | None) -> ExitCode:
    """Show the cluster on one screen.

    Shows its state, stacks, nodes, replacements, login node, current cost per hour, end, use, job of its nodes, and the
    last stack events. Names everything that could not be read.

    Exit code 0: every node is verified, or the cluster should have no nodes, such as one for SageMaker only. 1:
    otherwise, or not deployed. 3: as 0, but something could not be read.
    """
    plan = read_cluster_plan(invocation)
    nodes_stack = cluster_stack_name(invocation, plan, stack)
    with waiting(f"Asking AWS for {plan.cluster_name} in {plan.region} ..."):
        found = _read(plan, nodes_stack, invocation.clients, is_given=stack is not None)
    if found is None:
        message = f"{plan.cluster_name} is not deployed in {plan.region}.{others_sentence(invocation, plan)}"
        raise CliError(message, ExitCode.NOT_READY)
    if invocation.as_json:
        print_json(status_as_json(found))
    else:
        rows = status_rows(found, now=datetime.now(UTC), idle_minutes=plan.pilot.idle_minutes)
        console().print(f"{plan.cluster_name} in {plan.region}", style="bold")
        console().print(pairs(rows))
    unread = ExitCode.UNKNOWN if found.not_read else ExitCode.OK
    return unread if found.is_healthy else ExitCode.NOT_READY


def _read(plan: Plan, stack: str, clients: Clients, *, is_given: bool) -> ClusterStatus | None:
    def cluster_by(account: AwsClustersAccount) -> Cluster | None:
        listed = clusters_in(plan.region, account, prices=plan.prices)
        return next((found for found in listed.clusters if found.name == plan.cluster_name), None)

    account = AwsClustersAccount(plan.region, clients=clients, by_tag=False)
    cluster = cluster_by(account)
    plans_nodes = any(key in ENGINES_WITH_NODES for key in plan.stacks)
    if cluster is None or (plans_nodes and stack not in {found.name for found in cluster.stacks}):
        # A failed first deployment leaves a stack without a record.
        cluster = cluster_by(AwsClustersAccount(plan.region, clients=clients))
    if cluster is None:
        return None
    names = [found.name for found in cluster.stacks]
    if names and stack not in names and not is_given:  # no stack has nodes: for example, SageMaker alone
        stack = names[0]

    use = AwsUsage(plan.region, clients=clients)

    @cache
    def last_job(bucket: str) -> LastJob | None:
        return use.last_job(bucket)

    def usage(instances: Collection[str]) -> ClusterUsage | None:
        fleet = account.fleet_record(stack)
        return use.usage(fleet.bucket, instances, last_job(fleet.bucket), now=datetime.now(UTC)) if fleet else None

    def job() -> JobStatus | None:
        own = (record for record in account.stack_records(stack) if ENGINES[record.engine].has_outside_nodes)
        fleet = next(own, None) or account.fleet_record(stack)
        if fleet is None:
            return None
        jobs = JobStore(plan.region, fleet.bucket, clients=clients)
        if fleet.group is None:  # Slurm and EKS, whose jobs may run at the same time
            newest = jobs.newest(1, brief=True)
            return JobStatus(job_id=newest[0].job.id, status=newest[0].status) if newest else None
        last = last_job(fleet.bucket)
        if last is None:
            return None
        state = None if last.ended else jobs.state(last.job_id)
        return JobStatus(job_id=last.job_id, status=state.status if state else last.result or "unknown")

    return cluster_status(
        cluster,
        stack,
        nodes=AwsNodes(plan.region, clients=clients),
        events=AwsStackEvents(plan.region, clients=clients),
        job=job,
        usage=usage,
        absence=lambda: absence(cluster, AwsAbsences(plan.region, clients=clients), datetime.now(UTC)),
        replacements=plan.node.replacements if plan.node.recovery and plans_nodes else 0,
        plans_nodes=plans_nodes,
    )


_GONE_SHOWN = 3
"""The number of former failed nodes that are shown; `trn nodes` shows more."""


def status_rows(found: ClusterStatus, *, now: datetime, idle_minutes: int | None) -> list[tuple[str, str]]:
    """Labels and texts, also of what could not be read.

    Args:
        found: The status.
        now: The current time.
        idle_minutes: Minutes after which idle nodes are terminated, in the plan.
    """
    return list(_rows(found, now, idle_minutes))


def _rows(found: ClusterStatus, now: datetime, idle_minutes: int | None) -> Iterator[tuple[str, str]]:
    cluster = found.cluster
    yield "State", cluster.state
    yield "Stacks", ", ".join(stack.name for stack in cluster.stacks) or "none"
    types = ", ".join(f"{count} x {kind}" for kind, count in cluster.node_counts.items()) or "none"
    yield "Nodes", types
    if found.absence:
        yield "", str(found.absence)
    if found.nodes:
        if not (found.absence and found.nodes.asleep):  # the absence says the same
            yield "", f"{found.nodes.verdict.state}: {found.nodes.verdict.reason}"
        states = Counter(node.state for node in found.nodes.nodes)
        if len(states) > 1:
            yield "", ", ".join(f"{number} {state}" for state, number in sorted(states.items()))
        yield "Replacements", f"{found.nodes.replaced} of {found.replacements} used in the last 24 hours"
        for gone in found.nodes.gone[:_GONE_SHOWN]:
            yield "", f"{gone.instance_id}, {gone.since:%m-%d %H:%M}Z: {gone.reason}"
    if found.template:
        yield "Template", found.template
    if cluster.login_counts:
        yield "Login node", ", ".join(cluster.login_counts)
    for_what = "for the nodes and the login node" if cluster.login_counts else "for the nodes only"
    prepaid = "; the Capacity Block is prepaid" if any(node.product == CAPACITY_BLOCK for node in cluster.nodes) else ""
    yield "Price now", f"{cluster.per_hour} per hour, {for_what}{prepaid}"
    yield "End", _end(cluster.ends, now)
    if found.usage:
        yield "In use", _usage(found.usage, idle_minutes)
    if found.nodes and (busy := _utilization(found.nodes)):
        yield "Utilization", busy
    if found.has_nodes:
        yield "Job", f"{found.job.job_id}: {found.job.status}" if found.job else "none"
    for number, event in enumerate(found.events):
        at = f"{event.time:%m-%d %H:%M:%SZ} " if event.time else ""
        yield "" if number else "Last events", f"{at}{event.status}{f': {event.reason}' if event.reason else ''}"
    for reason in found.not_read:
        yield "Not read", reason


def status_as_json(found: ClusterStatus) -> dict[str, Any]:
    """The status. `usd_per_hour` is the sum of the known prices; other unknown or missing values are null."""
    cluster = found.cluster
    return {
        "name": cluster.name,
        "region": cluster.region,
        "state": cluster.state,
        "stacks": [{"name": stack.name, "status": stack.status} for stack in cluster.stacks],
        "nodes": report_as_json(found.nodes) if found.nodes else None,
        "absence": {"why": found.absence.why, "remedy": found.absence.remedy} if found.absence else None,
        "launch_template": found.template,
        "replacements": {"used": found.nodes.replaced if found.nodes else None, "allowed": found.replacements},
        "usd_per_hour": cluster.per_hour.usd,
        "unknown_prices": cluster.per_hour.unknown,
        "ends": utc_text(cluster.ends) if cluster.ends else None,
        "usage": {"state": found.usage.state, "why": found.usage.why} if found.usage else None,
        "login_nodes": dict(cluster.login_counts),
        "job": {"id": found.job.job_id, "status": found.job.status} if found.job else None,
        "events": [{"time": event.time, "status": event.status, "reason": event.reason} for event in found.events],
        "not_read": list(found.not_read),
    }


def _utilization(report: NodesReport) -> str:
    """The metrics of the nodes that report any; empty if none does."""
    measured = {node.instance_id: node.metrics for node in report.nodes if node.metrics != NOT_MEASURED}
    if not measured:
        return ""
    busy = {name: value for name, one in measured.items() if (value := one.core_utilization) is not None}
    memory = [value for one in measured.values() if (value := one.memory_utilization) is not None]
    lowest = min(busy, key=lambda name: busy[name], default="")
    least = f" (least: {lowest}, {percent(busy[lowest])})" if len(busy) > 1 else ""
    errors = known_sum([one.errors for one in measured.values()])
    return (
        f"cores {percent(fmean(busy.values()) if busy else None)}{least}, memory "
        f"{percent(fmean(memory) if memory else None)}, errors {number_text(errors)}; "
        f"{len(busy)} of {len(report.nodes)} nodes report"
    )


def _usage(usage: ClusterUsage, idle_minutes: int | None) -> str:
    if usage.state != "idle" or usage.idle_since is None:
        return f"{'yes' if usage.state == 'in-use' else 'unknown'}: {usage.why}"
    if idle_minutes is None:
        return f"no: {usage.why}; trn:idle_minutes is not set, so the nodes keep running"
    stop = usage.idle_since + timedelta(minutes=idle_minutes)
    return f"no: {usage.why}; the nodes are terminated at {minute_text(stop)} (trn:idle_minutes)"


def _end(ends: datetime | None, now: datetime) -> str:
    if ends is None:
        return "none: the cluster does not end automatically"
    moment = minute_text(ends)
    left = (ends - now).total_seconds()
    return f"{moment}, in {duration(left)}" if left > 0 else f"{moment}, which has passed"

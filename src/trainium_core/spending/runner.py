"""Determines what a plan's cluster has cost and costs now."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

from trainium_core.audit.outcome import Audit, NotRead
from trainium_core.audit.runner import Progress, audit
from trainium_core.capacity.block_start import block_start
from trainium_core.costs.estimate import CostLine, Estimate, Total, estimate
from trainium_core.engines.registry import service_nodes
from trainium_core.plan import Plan
from trainium_core.plan.pilot_end import read_pilot_end
from trainium_core.spending.aws_account import AwsSpendingAccount
from trainium_core.spending.estimated import (
    INSTANCE,
    history_start,
    hourly_lines,
    hours,
    lines_before_history,
    node_lines,
    prepaid_lines,
    resource_lines,
)
from trainium_core.spending.node_runs import NodeRun, node_runs
from trainium_core.spending.spending import Forecast, Spending, SpendingLine
from trainium_runtime.errors import UnavailableError

_GROUP = "AWS::AutoScaling::AutoScalingGroup"
_NODE_RESOURCE_TYPES = ("AWS::AutoScaling::AutoScalingGroup", "AWS::EC2::LaunchTemplate")
"""The resource types of a plan's instances and root volumes in its cost items."""


def spending(
    plan: Plan,
    account: AwsSpendingAccount,
    *,
    stack_names: Sequence[str],
    now: datetime,
    ask_cost_explorer: bool,
    on_progress: Progress | None = None,
) -> Spending:
    """Determine what a plan's cluster has cost, and what it costs now.

    Args:
        plan: The plan.
        account: The account and region of the cluster.
        stack_names: The names of the cluster's stacks.
        now: The current time.
        ask_cost_explorer: Whether to ask Cost Explorer, which AWS bills per request.
        on_progress: Called after each call of the audit, except listings of kinds that users keep.

    Raises:
        UnavailableError: The caller's identity cannot be read, or every call of the audit failed.
    """
    audited = audit(plan, account, stack_names=stack_names, now=now, on_progress=on_progress, only_estimated=True)
    since = min((stack.created for stack in audited.stacks), default=None)
    not_read = list(audited.not_read)
    runs = list(_runs(account, audited, not_read, now, plan.instance_type))
    deployed = min((stack.created for stack in audited.stacks if stack.exists), default=None)
    ends = _end(plan, account, deployed, not_read)
    audited = replace(audited, not_read=tuple(not_read))
    estimated_cost = estimate(plan, aws=account)
    of_services = {nodes.resource_type for nodes in service_nodes()}
    estimated = (
        *node_lines(runs, _per_node(estimated_cost), plan.nodes, now),
        *lines_before_history(since, now),
        *(_ended_line(stack.name) for stack in audited.stacks if any(kind in of_services for kind, _ in stack.made)),
        *prepaid_lines(plan),
        *resource_lines(audited, [run.instance_id for run in runs]),
    )
    billed, not_billed = _billed(account, plan, since, now) if ask_cost_explorer else (None, "not requested")
    without_forecast = Spending(
        audit=audited,
        since=since,
        billed=billed,
        not_billed=not_billed,
        estimated=estimated,
        now=tuple(hourly_lines(audited)),
        forecast=None,
    )
    return replace(without_forecast, forecast=_forecast(ends, without_forecast))


def _runs(
    account: AwsSpendingAccount, audited: Audit, not_read: list[NotRead], now: datetime, node_type: str
) -> Iterator[NodeRun]:
    """Each run. Instances of other types than nodes, such as login nodes, have no run unless they are in a group."""
    instances = [resource.resource for resource in audited.resources if resource.kind == INSTANCE]
    running = {instance.name: instance.created for instance in instances}
    others = {i.name for i in instances if {item.instance_type for item in i.charge.items} - {node_type}}
    counted = set[str]()
    groups = [(name, stack) for stack in audited.stacks for kind, name in stack.made if kind == _GROUP]
    for name, stack in groups:
        try:
            activities = account.scaling_activities(name)
            if not activities and not stack.exists:
                raise UnavailableError("Auto Scaling has no history of this deleted group")
        except UnavailableError as error:
            not_read.append(NotRead(what=f"when the nodes of {name} ran", reason=str(error)))
        else:
            runs = node_runs(activities, running=running, deleted=stack.deleted, history_start=history_start(now))
            for run in runs:
                counted.add(run.instance_id)
                yield run
    for name, launched in running.items():  # Launched before the history of the groups, or not in a group.
        if name not in counted | others and launched is not None:
            yield NodeRun(instance_id=name, began=launched, ended=None)


def _ended_line(stack: str) -> SpendingLine:
    """The line of nodes that a service started for jobs and then ended."""
    return SpendingLine(what=f"terminated nodes of {stack}", usd=None, how="unknown: their service keeps no history")


def _per_node(estimated: Estimate) -> list[CostLine]:
    """The hourly items of the nodes. Instances in a reservation are billed always, and here for their run times."""
    billed = ("running", "always")
    return [line for line in estimated.lines if line.resource_type in _NODE_RESOURCE_TYPES and line.billed in billed]


def _billed(
    account: AwsSpendingAccount, plan: Plan, since: datetime | None, now: datetime
) -> tuple[Mapping[str, Decimal] | None, str]:
    if since is None:
        return None, "not requested: CloudFormation lists no stack of the cluster, so the start is unknown"
    try:
        billed = account.billed(plan.cluster_name, since.date(), now.date() + timedelta(days=1))
    except UnavailableError as error:
        return None, str(error)
    if not any(billed.values()):
        return None, (
            "no costs are recorded under the tag trn:cluster: the payer has not activated it as a cost allocation tag, "
            "or it is too early (Cost Explorer lags by up to a day, and a new tag by another)"
        )
    return billed, ""


def _end(
    plan: Plan, account: AwsSpendingAccount, deployed: datetime | None, not_read: list[NotRead]
) -> datetime | None:
    """The end of a deployed pilot; None without one, or if the Capacity Block from whose start it counts is unknown."""
    ends = plan.pilot.ends
    if ends is None or deployed is None:
        return None
    try:
        begins = block_start(ends, account.capacity, capacity=plan.capacity, reservation_id=plan.reservation_id)
    except UnavailableError as error:
        not_read.append(NotRead(what="when the pilot ends", reason=str(error)))
        return None
    return read_pilot_end(ends).instant(deployed, begins)


def _forecast(ends: datetime | None, costs: Spending) -> Forecast | None:
    """The forecast starts from the bill or the estimate, whichever is higher: bills lag, and estimates have gaps."""
    if ends is None:
        return None
    left = max(hours(ends - costs.audit.time), Decimal(0))
    spent = max(costs.billed_total or Decimal(0), costs.estimated_total.usd)
    unknown = costs.estimated_total.unknown + (costs.hourly.unknown if left else 0)
    return Forecast(ends=ends, hours=left, total=Total(usd=spent + costs.hourly.usd * left, unknown=unknown))

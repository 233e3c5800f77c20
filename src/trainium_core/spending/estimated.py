"""Estimates what a cluster has cost: nodes by their run times, other resources by their age."""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal

from trainium_core.audit.monthly_price import hours_per_month
from trainium_core.audit.outcome import Audit, Audited
from trainium_core.costs.estimate import CostLine
from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_core.plurals import count
from trainium_core.prices.price import CAPACITY_BLOCK, products
from trainium_core.spending.node_runs import NodeRun
from trainium_core.spending.spending import SpendingLine

INSTANCE, _VOLUME = "EC2 instance", "EBS volume"

_HOUR = timedelta(hours=1)
_PREPAID = "prepaid, not included"


def hours(duration: timedelta) -> Decimal:
    return Decimal(str(duration / _HOUR))


def node_lines(
    runs: Sequence[NodeRun], per_node: Sequence[CostLine], nodes: int, now: datetime
) -> Iterator[SpendingLine]:
    """Estimate what nodes have cost.

    Args:
        runs: The times that nodes ran.
        per_node: Hourly items of the plan's nodes, for all `nodes` together.
        nodes: The number of nodes of the plan.
        now: The current time.
    """
    durations = [run.duration(now) for run in runs]
    total = sum((duration for duration in durations if duration is not None), timedelta())
    unknown = durations.count(None)
    how = f"estimated: {hours(total):.2f} node-hours in the history of Auto Scaling and EC2, at today's price"
    for line in per_node if runs else ():
        hourly = None if line.running_hour is None else line.running_hour / nodes
        what = f"{products()[line.item.product].name}, of all nodes"
        yield SpendingLine(what=what, usd=None if hourly is None else hourly * hours(total), how=how)
    if unknown:
        what = f"{count(unknown, 'node')} with an unknown end"
        yield SpendingLine(what=what, usd=None, how="unknown: no longer in Auto Scaling's history")


def lines_before_history(since: datetime | None, now: datetime) -> Iterator[SpendingLine]:
    """A line for the time before Auto Scaling's history, if the cluster is that old."""
    start = history_start(now)
    if since is not None and since < start:
        how = f"unknown: Auto Scaling's history covers {_weeks()} weeks"
        yield SpendingLine(what=f"nodes terminated before {start:%Y-%m-%d}", usd=None, how=how)


def history_start(now: datetime) -> datetime:
    """The start of Auto Scaling's history, six weeks ago."""
    return now - timedelta(weeks=_weeks())


def _weeks() -> int:
    weeks: int = facts()["scaling_activities"]["weeks"]
    return weeks


def resource_lines(audit: Audit, nodes: Collection[str]) -> Iterator[SpendingLine]:
    """Estimate what existing resources have cost since their creation.

    A resource without a known creation time counts from the creation of the oldest existing stack.

    Args:
        audit: The audit of the cluster.
        nodes: IDs of instances that node_lines() estimates together with their volumes.
    """
    since = min((stack.created for stack in audit.stacks if stack.exists), default=None)
    for audited in _billed_resources(audit):
        if audited.kind == INSTANCE and audited.resource.name in nodes:
            continue
        if audited.kind == _VOLUME and audited.resource.parents & {*nodes}:
            continue
        began = audited.resource.created or since
        hourly = _per_hour(audited)
        if hourly is None or began is None:
            how = audited.resource.charge.unpriced or ("no price" if hourly is None else "creation time unknown")
            yield SpendingLine(what=_name(audited), usd=None, how=f"unknown: {how}")
        else:
            age = hours(audit.time - began)
            yield SpendingLine(what=_name(audited), usd=hourly * age, how=f"estimated: {age:.2f} h at today's price")


def prepaid_lines(plan: Plan) -> Iterator[SpendingLine]:
    """The Capacity Block, which was paid for when it was bought. EC2 does not return the amount later."""
    if plan.capacity == CAPACITY_BLOCK:
        yield SpendingLine(what=f"Capacity Block {plan.reservation_id}", usd=Decimal(0), how=_PREPAID)


def hourly_lines(audit: Audit) -> Iterator[SpendingLine]:
    """The hourly cost of each existing resource that is billed or has no known price."""
    for audited in _billed_resources(audit):
        hourly = _per_hour(audited)
        how = "list price" if hourly is not None else audited.resource.charge.unpriced or "no price"
        yield SpendingLine(what=_name(audited), usd=hourly, how=how)


def _billed_resources(audit: Audit) -> Iterator[Audited]:
    """The resources of the cluster that are billed by time or have no known price; shared resources do not count."""
    return (audited for audited in audit.resources if audited.group != "shared" and audited.usd_per_month != 0)


def _per_hour(audited: Audited) -> Decimal | None:
    return None if audited.usd_per_month is None else audited.usd_per_month / hours_per_month()


def _name(audited: Audited) -> str:
    return f"{audited.kind} {audited.resource.name}"

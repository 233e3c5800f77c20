"""Estimates what a cluster has cost: nodes by their run times, other resources by their age."""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal

from trainium_core.audit.monthly_price import hours_per_month
from trainium_core.audit.outcome import Audit, Audited
from trainium_core.costs.estimate import CostLine
from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_core.prices.price import CAPACITY_BLOCK, products
from trainium_core.spending.node_runs import NodeRun
from trainium_core.spending.spending import Line

INSTANCE = "EC2 instance"
OF_NODES = (INSTANCE, "EBS volume")
"""Kinds that exist only with nodes, which are estimated by the nodes' run times."""

_HOUR = timedelta(hours=1)
_PREPAID = "prepaid, not included"


def hours(lasted: timedelta) -> Decimal:
    return Decimal(str(lasted / _HOUR))


def node_lines(
    runs: Sequence[NodeRun], per_node: Sequence[CostLine], nodes: int, now: datetime, *, noun: str = "node"
) -> Iterator[Line]:
    """`per_node`: hourly items of the plan's nodes, for all `nodes` together. noun: the name of one."""
    lasted = [run.lasted(now) for run in runs]
    known = sum((one for one in lasted if one is not None), timedelta())
    unknown = lasted.count(None)
    how = f"estimated: {hours(known):.2f} {noun}-hours in the history of Auto Scaling and EC2, at today's price"
    for line in per_node if runs else ():
        hourly = None if line.running_hour is None else line.running_hour / nodes
        what = products()[line.item.product].name
        yield Line(what=f"{what}, of all {noun}s", usd=None if hourly is None else hourly * hours(known), how=how)
    if runs and not per_node:
        yield Line(what=f"{noun}s", usd=None, how=f"unknown: the plan has no {noun}")
    if unknown:
        yield Line(
            what=f"{unknown} {noun}s with an unknown end", usd=None, how="unknown: no longer in Auto Scaling's history"
        )


def forgotten_lines(since: datetime | None, now: datetime) -> Iterator[Line]:
    """The time before Auto Scaling's history."""
    remembered = remembered_since(now)
    if since is not None and since < remembered:
        how = f"unknown: Auto Scaling's history covers {_weeks()} weeks"
        yield Line(what=f"nodes before {remembered:%Y-%m-%d} that have ended", usd=None, how=how)


def remembered_since(now: datetime) -> datetime:
    """The start of Auto Scaling's history."""
    return now - timedelta(weeks=_weeks())


def _weeks() -> int:
    weeks: int = facts()["scaling_activities"]["weeks"]
    return weeks


def resource_lines(audit: Audit, nodes: Collection[str]) -> Iterator[Line]:
    """Existing resources except nodes, from their creation, or that of the oldest existing stack.

    nodes: IDs of instances that are estimated by their run times.
    """
    since = min((stack.created for stack in audit.stacks if stack.exists), default=None)
    for one in billed_resources(audit):
        if one.kind in OF_NODES and (one.kind != INSTANCE or one.resource.name in nodes):
            continue
        began = one.resource.created or since
        hourly = per_hour(one)
        if hourly is None or began is None:
            how = one.resource.charge.unpriced or ("no price" if hourly is None else "creation time unknown")
            yield Line(what=_name(one), usd=None, how=f"unknown: {how}")
        else:
            lasted = hours(audit.time - began)
            yield Line(what=_name(one), usd=hourly * lasted, how=f"estimated: {lasted:.2f} h at today's price")


def prepaid_lines(plan: Plan) -> Iterator[Line]:
    """The Capacity Block, which was paid when it was bought. No request returns the amount later."""
    if plan.capacity == CAPACITY_BLOCK:
        yield Line(what=f"Capacity Block {plan.reservation_id}", usd=Decimal(0), how=_PREPAID)


def hourly_lines(audit: Audit) -> Iterator[Line]:
    """The hourly cost of everything that exists."""
    for one in billed_resources(audit):
        lacks = one.resource.charge.unpriced or "no price"
        yield Line(what=_name(one), usd=per_hour(one), how=lacks if per_hour(one) is None else "list price")


def billed_resources(audit: Audit) -> tuple[Audited, ...]:
    """The resources of the cluster that cost something while unused. Shared resources do not count."""
    return tuple(one for one in audit.resources if one.group != "shared" and one.usd_per_month != 0)


def per_hour(one: Audited) -> Decimal | None:
    return None if one.usd_per_month is None else one.usd_per_month / hours_per_month()


def _name(one: Audited) -> str:
    return f"{one.kind} {one.resource.name}"

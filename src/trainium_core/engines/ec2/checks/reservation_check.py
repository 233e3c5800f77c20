"""Whether the Capacity Block or reservation of the nodes exists, matches the plan, and has room."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from trainium_core.aws.account import AwsAccount
from trainium_core.aws.capacity import INSTANCE_PLATFORM, Reservation
from trainium_core.capacity.region_options import usable_until
from trainium_core.engines.ec2.checks.place import node_zone_id
from trainium_core.plan import Plan
from trainium_core.plurals import count
from trainium_core.preflight.finding import worst_result
from trainium_runtime.check_result import CheckResult

TENANCY = "default"
USABLE = ("active", "scheduled")
_BECOMING_USABLE = ("pending", "assessing", "payment-pending", "delayed")


def check_reservation(plan: Plan, account: AwsAccount) -> CheckResult | None:
    """Check the reservation; None for a plan without one."""
    if plan.reservation_id is None:
        return None
    with ThreadPoolExecutor() as threads:
        zone = threads.submit(node_zone_id, plan, account)
        own = threads.submit(account.capacity.instances_in_reservation, plan.reservation_id, cluster=plan.cluster_name)
        reservation = account.capacity.reservation(plan.reservation_id)
    if reservation is None:
        found = f"no {plan.reservation_id} in {plan.region} that this account can access"
        fix = "set trn:reservation_id to another, or trn:region to its region; `trn capacity` lists the reservations"
        return CheckResult(outcome="fail", found=found, fix=fix)
    return judge_reservation(plan, reservation, zone_id=zone.result(), own_nodes=own.result(), now=datetime.now(UTC))


def judge_reservation(
    plan: Plan, reservation: Reservation, *, zone_id: str, own_nodes: int, now: datetime
) -> CheckResult:
    """The result for an existing reservation.

    Args:
        plan: The plan.
        reservation: The reservation.
        zone_id: Availability Zone ID of the nodes.
        own_nodes: Number of the cluster's instances that already run in the reservation.
        now: The current time.
    """
    results = [*_mismatches(plan, reservation, zone_id), _state(plan, reservation, now)]
    if reservation.state in USABLE:
        results.append(_room(plan, reservation, own_nodes))
    result = worst_result(results)
    return replace(result, found=f"{reservation.reservation_id}: {result.found}")


def _mismatches(plan: Plan, reservation: Reservation, zone_id: str) -> Iterator[CheckResult]:
    for what, got, wanted, fix in (
        ("kind", reservation.capacity, plan.capacity, _setting("capacity", reservation.capacity)),
        ("type", reservation.instance_type, plan.instance_type, _setting("instance_type", reservation.instance_type)),
        ("zone", reservation.zone_id, zone_id, _zone_fix(plan, reservation)),
        ("platform", reservation.platform, INSTANCE_PLATFORM, "use another reservation"),
        ("tenancy", reservation.tenancy, TENANCY, "use another reservation"),
        ("placement group", reservation.placement_group, plan.network.placement_group, _group_fix(reservation)),
    ):
        if got != wanted:
            found = f"its {what} is {got or 'none'}, not {wanted or 'none'}"
            yield CheckResult(outcome="fail", found=found, fix=fix)


def _setting(name: str, value: str) -> str:
    return f"set trn:{name} to {value}"


def _zone_fix(plan: Plan, reservation: Reservation) -> str:
    if plan.network.vpc_id is not None:
        return f"set trn:subnet_id to a subnet in {reservation.zone_id}"
    return _setting("availability_zone_id", reservation.zone_id)


def _group_fix(reservation: Reservation) -> str:
    if reservation.placement_group is None:
        return "remove trn:placement_group"
    return _setting("placement_group", reservation.placement_group)


def _state(plan: Plan, reservation: Reservation, now: datetime) -> CheckResult:
    last = usable_until(reservation)
    if reservation.state not in USABLE:
        fix = "wait until it is active" if reservation.state in _BECOMING_USABLE else "use another reservation"
        return CheckResult(outcome="fail", found=f"it is {reservation.state}", fix=fix)
    start = max(reservation.start or now, now)
    timeout = timedelta(minutes=plan.node.timeout_minutes)
    if last is not None and last - start < timeout:
        found = f"it is usable until {_time(last)}"
        needed = f"{plan.node.timeout_minutes} minutes for the nodes to start"
        return CheckResult(outcome="fail", found=found, needed=needed, fix="use another reservation")
    until = "" if last is None else f"; usable until {_time(last)}"
    if reservation.state == "scheduled":
        found = f"scheduled: no node can launch before {_time(start)}{until}"
        is_block = plan.capacity == "capacity-block"
        fix = "deploy at any time: the nodes launch when it begins" if is_block else "deploy after that"
        return CheckResult(outcome="warn", found=found, fix=fix)
    return CheckResult(outcome="pass", found=f"active{until}")


def _room(plan: Plan, reservation: Reservation, own_nodes: int) -> CheckResult:
    missing = max(0, plan.nodes - own_nodes)
    needed = count(missing, "instance")
    if not reservation.total and reservation.state == "scheduled":
        found = "its number of instances is known only after it starts"
        return CheckResult(outcome="unknown", found=found, needed=needed)
    found = f"{reservation.launchable} of {reservation.total} instances are left"
    if own_nodes:
        found += f", and {own_nodes} are nodes of the cluster"
    if missing <= reservation.launchable:
        return CheckResult(outcome="pass", found=found, needed=needed)
    launchable = reservation.launchable + own_nodes
    fix = f"set trn:nodes to {launchable}, or use another reservation" if launchable else "use another reservation"
    return CheckResult(outcome="fail", found=found, needed=needed, fix=fix)


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"

"""Why a cluster has no nodes, and how to get them back."""

import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from trainium_core.aws.capacity import Reservation
from trainium_core.capacity.region_options import usable_until
from trainium_core.clusters.cluster import Absence, Cluster, ClusterList, ClusterStack
from trainium_core.engines.registry import ENGINES_WITH_NODES
from trainium_core.explanations.known_errors import known_error
from trainium_core.naming import stack_names
from trainium_core.plan.pilot_end import minute_text
from trainium_runtime.errors import UnavailableError
from trainium_runtime.pilot_clock import Stopped
from trainium_runtime.pilot_end import utc_text
from trainium_wire.stack_record import StackRecord

_SECONDS = re.compile(r"(?<=T\d\d:\d\d):[\d.]+Z$")
"""Seconds of a time, which are not shown. An end that is set in hours after the deployment has them."""

_WAKE = "`trn wake` restores them"
_EXTEND = "`trn extend 8h` sets a later end"
_LONGEST_REASON = 300
_UNUSABLE = ("expired", "cancelled", "failed", "payment-failed", "unsupported")
"""Final states of a reservation without capacity."""


@dataclass(frozen=True, kw_only=True)
class ScalingGroup:
    """The Auto Scaling group of the nodes.

    Attributes:
        desired: Its desired size.
        error: Error of its last scaling activity; empty if that did not fail.
    """

    desired: int
    error: str = ""


class AbsenceAccount(Protocol):
    """Methods raise UnavailableError if a request fails or is denied."""

    def fleet(self, stack: ClusterStack) -> StackRecord | None:
        """The record of the cluster's nodes in a stack; None without one."""
        ...

    def stop_reason(self, topic_arn: str) -> str | None:
        """The reason in the tags of the pilot's topic why the controller stopped the nodes; None if it did not."""
        ...

    def group(self, name: str) -> ScalingGroup | None:
        """The Auto Scaling group with this name; None if it does not exist."""
        ...

    def reservation(self, reservation_id: str) -> Reservation | None:
        """The reservation with this ID; None if it does not exist."""
        ...


def absence(cluster: Cluster, account: AbsenceAccount, now: datetime) -> Absence | None:
    """Why a cluster has no nodes. None if it has nodes, its stacks define none, or no reason is known.

    Args:
        cluster: The cluster.
        account: The account.
        now: The current time.

    Raises:
        UnavailableError: A request failed or was denied.
    """
    stack = next((stack for stack in cluster.stacks if _may_have_nodes(stack, cluster.name)), None)
    if stack is None or cluster.node_counts:
        return None
    if stack.asleep:
        return Absence(why="it was put to sleep", remedy=_WAKE)
    fleet = account.fleet(stack)
    reason = (
        _end_reason(cluster, now)
        or _clock_reason(account.stop_reason(fleet.topic_arn) if fleet and fleet.topic_arn else None)
        or _reservation_reason(fleet, account, now)
        or _group_reason(fleet, account)
    )
    if reason is None and not stack.is_steady:
        is_changing = stack.status.endswith("_IN_PROGRESS")
        remedy = "`trn nodes --watch` follows the change" if is_changing else "`trn nodes` shows what failed"
        return Absence(why=f"its stack is in {stack.status}", remedy=remedy)
    return reason


def _may_have_nodes(stack: ClusterStack, cluster: str) -> bool:
    """Whether a stack has nodes, or would have some if it were deployed.

    A failed first deployment leaves a stack without a record, which then only its usual name describes.
    """
    if stack.has_record or stack.is_steady:
        return stack.has_nodes
    usual = next((key for key, name in stack_names(cluster).items() if name == stack.name), None)
    return usual is None or usual in ENGINES_WITH_NODES


def _end_reason(cluster: Cluster, now: datetime) -> Absence | None:
    if cluster.ends is None or cluster.ends > now:
        return None
    return Absence(why=f"the pilot ended at {minute_text(cluster.ends)}", remedy=_EXTEND)


def _clock_reason(recorded: str | None) -> Absence | None:
    try:
        stopped = Stopped.from_text(recorded or "")
    except ValueError:
        return None
    detail = _SECONDS.sub("Z", stopped.detail)
    match stopped.kind:
        case "end":
            return Absence(why=f"the pilot ended at {detail}", remedy=_EXTEND)
        case "budget":
            remedy = "raise trn:budget_usd, and run `trn deploy`"
            return Absence(why=f"its budget of ${detail} is spent", remedy=remedy)
        case "idle":
            return Absence(why=f"not used since {detail}", remedy=_WAKE)
        case "capacity-block":  # EC2 says why
            return None


def _reservation_reason(fleet: StackRecord | None, account: AbsenceAccount, now: datetime) -> Absence | None:
    """The reason if the reservation or Capacity Block has not begun, is unusable, is at its end, or does not exist."""
    name = str(fleet.settings.get("reservation_id") or "") if fleet else ""
    if not name:
        return None
    block = account.reservation(name)
    another = "`trn capacity` finds another: set trn:reservation_id, and run `trn deploy`"
    if block is None:
        return Absence(why=f"EC2 has no reservation {name}", remedy=another)
    if block.state in _UNUSABLE:
        return Absence(why=f"the state of {name} is {block.state}", remedy=another)
    if block.start and now < block.start and block.state != "active":
        return Absence(why=f"{name} begins at {utc_text(block.start)}", remedy="the nodes launch then, automatically")
    if block.end and block.end <= now:
        return Absence(why=f"{name} ended at {utc_text(block.end)}", remedy=another)
    last = usable_until(block)
    if block.end and last and last <= now:
        return Absence(why=f"{name} ends at {utc_text(block.end)}, and its nodes stop before", remedy=another)
    return None


def _group_reason(fleet: StackRecord | None, account: AbsenceAccount) -> Absence | None:
    if fleet and fleet.group is None:
        return Absence(why="no job needs nodes", remedy="`trn run` submits a job, which starts nodes")
    group = account.group(fleet.group) if fleet and fleet.group else None
    if group is None:
        return None
    if group.desired == 0:
        return Absence(why="the desired size of their Auto Scaling group is 0", remedy=_WAKE)
    if not group.error:
        return Absence(why="no node has been launched yet", remedy="`trn nodes --watch` follows the launch")
    known = known_error(group.error)
    why = f"the last launch failed ({known.name if known else group.error[:_LONGEST_REASON]})"
    return Absence(why=why, remedy=known.fix if known else "`trn capacity` shows where capacity is available")


def with_absences(clusters: ClusterList, account: AbsenceAccount, now: datetime) -> ClusterList:
    """The clusters with the reasons why some have no nodes. Failures to read a reason are added to `not_read`."""
    absences, not_read = dict[str, Absence](), list(clusters.not_read)
    for cluster in clusters.clusters:
        try:
            if reason := absence(cluster, account, now):
                absences[cluster.name] = reason
        except UnavailableError as error:
            not_read.append(f"why {cluster.name} has no nodes: {error}")
    return replace(clusters, absences=absences, not_read=tuple(not_read))

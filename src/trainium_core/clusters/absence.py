"""Why a cluster has no nodes, and how to get them back."""

import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from trainium_core.capacity.offerings import Reservation
from trainium_core.clusters.cluster import Absence, Cluster, ClusterList, ClusterStack
from trainium_core.explanations.known_errors import known_error
from trainium_core.nodes.fleet import DeployedFleet
from trainium_core.plan.pilot_end import minute_text
from trainium_runtime.errors import UnavailableError
from trainium_runtime.pilot_end import utc_text

_END, _BUDGET, _IDLE = "end ", "budget ", "idle since "
"""Start of the state of a pilot's clock (trainium_runtime.pilot_clock)."""

_SECONDS = re.compile(r"(?<=T\d\d:\d\d):[\d.]+Z$")
"""Ends that are counted in hours from a deployment."""

_WAKE = "`trn wake` restores them"
_EXTEND = "`trn extend 8h` sets a later end"
_LONGEST_REASON = 300


@dataclass(frozen=True, kw_only=True)
class NodeGroup:
    """The Auto Scaling group of the nodes. wanted: its desired size. refusal: error of its last launch, or empty."""

    wanted: int
    refusal: str = ""


class AbsenceAccount(Protocol):
    """Methods raise UnavailableError if AWS does not answer."""

    def fleet(self, stack: ClusterStack) -> DeployedFleet | None: ...

    def stopped(self, cluster: str) -> str | None:
        """The recorded reason why the pilot's clock stopped the nodes."""
        ...

    def group(self, name: str) -> NodeGroup | None: ...

    def reservation(self, reservation_id: str) -> Reservation | None: ...


def absence(cluster: Cluster, account: AbsenceAccount, now: datetime) -> Absence | None:
    """None for a cluster that has nodes, or whose stacks define none. Raises UnavailableError."""
    stack = next((stack for stack in cluster.stacks if stack.has_nodes), None)
    if stack is None or cluster.node_counts:
        return None
    if stack.asleep:
        return Absence(why="it was put to sleep", remedy=_WAKE)
    fleet = account.fleet(stack)
    found = (
        _end_reason(cluster, now)
        or _clock_reason(account.stopped(cluster.name))
        or _reservation_reason(fleet, account, now)
        or _group_reason(fleet, account)
    )
    if found is None and not stack.is_steady:
        is_changing = stack.status.endswith("_IN_PROGRESS")
        remedy = "`trn nodes --watch` follows it" if is_changing else "`trn nodes` shows what failed"
        return Absence(why=f"its stack is in {stack.status}", remedy=remedy)
    return found


def _end_reason(cluster: Cluster, now: datetime) -> Absence | None:
    if cluster.ends is None or cluster.ends > now:
        return None
    return Absence(why=f"the pilot ended at {minute_text(cluster.ends)}", remedy=_EXTEND)


def _clock_reason(stopped: str | None) -> Absence | None:
    for begins, why, remedy in (
        (_END, "the pilot ended at {}", _EXTEND),
        (_BUDGET, "its budget of ${} is spent", "raise trn:budget_usd, and run `trn deploy`"),
        (_IDLE, "not used since {}", _WAKE),
    ):
        if stopped and stopped.startswith(begins):
            what = _SECONDS.sub("Z", stopped.removeprefix(begins))
            return Absence(why=why.format(what), remedy=remedy)
    return None


def _reservation_reason(fleet: DeployedFleet | None, account: AbsenceAccount, now: datetime) -> Absence | None:
    """The reason of a Capacity Block or reservation that has not started, or has ended."""
    if fleet is None or fleet.reservation_id is None:
        return None
    block, name = account.reservation(fleet.reservation_id), fleet.reservation_id
    another = "`trn capacity` finds another: set trn:reservation_id, and run `trn deploy`"
    if block is None:
        return Absence(why=f"EC2 has no reservation {name}", remedy=another)
    if block.start and now < block.start and block.state != "active":
        return Absence(why=f"{name} begins at {utc_text(block.start)}", remedy="they launch automatically then")
    if block.state in ("expired", "cancelled", "failed", "unsupported") or (block.end and block.end <= now):
        return Absence(why=f"{name} is over ({block.state})", remedy=another)
    return None


def _group_reason(fleet: DeployedFleet | None, account: AbsenceAccount) -> Absence | None:
    if fleet and fleet.service_group:
        return Absence(why="no job needs any", remedy="`trn run` submits a job, which starts them")
    group = account.group(fleet.group) if fleet and fleet.group else None
    if group is None:
        return None
    if group.wanted == 0:
        return Absence(why="the desired size of their Auto Scaling group is 0", remedy=_WAKE)
    if not group.refusal:
        return Absence(why="none is launched yet", remedy="`trn nodes --watch` follows them")
    known = known_error(group.refusal)
    why = f"EC2 launched none ({known.name if known else group.refusal[:_LONGEST_REASON]})"
    return Absence(why=why, remedy=known.fix if known else "`trn capacity` shows where capacity is available")


def with_absences(found: ClusterList, account: AbsenceAccount, now: datetime) -> ClusterList:
    """The clusters, with the reason why some have no nodes. A reason that cannot be read is reported."""
    absences, not_read = dict[str, Absence](), list(found.not_read)
    for cluster in found.clusters:
        try:
            if reason := absence(cluster, account, now):
                absences[cluster.name] = reason
        except UnavailableError as error:
            not_read.append(f"why {cluster.name} has no nodes: {error}")
    return replace(found, absences=absences, not_read=tuple(not_read))

"""Why a cluster has no nodes, and what brings them."""

import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from trainium_core.capacity.offerings import Reservation
from trainium_core.clusters.cluster import Absence, Cluster, ClusterList, ClusterStack
from trainium_core.nodes.fleet import DeployedFleet
from trainium_core.plan.pilot_end import minute_text
from trainium_core.stacks.known_errors import known_error
from trainium_runtime.errors import UnavailableError
from trainium_runtime.pilot_end import utc_text

_END, _BUDGET, _IDLE = "end ", "budget ", "idle since "
"""How what the clock of a pilot remembers begins (trainium_runtime.pilot_clock)."""

_SECONDS = re.compile(r"(?<=T\d\d:\d\d):[\d.]+Z$")
"""Of a time: those of an end that is counted in hours from a deployment."""

_WAKE = "`trn wake` brings them back"
_EXTEND = "`trn extend 8h` sets a later end"
_LONGEST_REASON = 300


@dataclass(frozen=True, kw_only=True)
class NodeGroup:
    """The Auto Scaling group of the nodes. wanted: how many it is to have. refusal: of its last launch; else empty."""

    wanted: int
    refusal: str = ""


class AbsenceAccount(Protocol):
    """Each method raises UnavailableError without an answer."""

    def fleet(self, stack: ClusterStack) -> DeployedFleet | None: ...

    def stopped(self, cluster: str) -> str | None:
        """What the clock of its pilot remembers of why there are no nodes."""
        ...

    def group(self, name: str) -> NodeGroup | None: ...

    def reservation(self, reservation_id: str) -> Reservation | None: ...


def absence(cluster: Cluster, account: AbsenceAccount, now: datetime) -> Absence | None:
    """None for a cluster that has nodes, or whose stacks make none. Raises UnavailableError."""
    stack = next((stack for stack in cluster.stacks if stack.has_nodes), None)
    if stack is None or cluster.node_counts:
        return None
    if stack.asleep:
        return Absence(why="it was put to sleep", way_on=_WAKE)
    fleet = account.fleet(stack)
    found = (
        _of_the_end(cluster, now)
        or _of_the_clock(account.stopped(cluster.name))
        or _of_the_block(fleet, account, now)
        or _of_the_group(fleet, account)
    )
    if found is None and not stack.is_steady:
        goes_on = stack.status.endswith("_IN_PROGRESS")
        way_on = "`trn nodes --watch` follows it" if goes_on else "`trn nodes` shows what failed"
        return Absence(why=f"its stack is in {stack.status}", way_on=way_on)
    return found


def _of_the_end(cluster: Cluster, now: datetime) -> Absence | None:
    if cluster.ends is None or cluster.ends > now:
        return None
    return Absence(why=f"the pilot ended at {minute_text(cluster.ends)}", way_on=_EXTEND)


def _of_the_clock(stopped: str | None) -> Absence | None:
    for begins, why, way_on in (
        (_END, "the pilot ended at {}", _EXTEND),
        (_BUDGET, "its budget of ${} is spent", "raise trn:budget_usd, and run `trn deploy`"),
        (_IDLE, "nobody used them since {}", _WAKE),
    ):
        if stopped and stopped.startswith(begins):
            what = _SECONDS.sub("Z", stopped.removeprefix(begins))
            return Absence(why=why.format(what), way_on=way_on)
    return None


def _of_the_block(fleet: DeployedFleet | None, account: AbsenceAccount, now: datetime) -> Absence | None:
    """Also of a reservation that is no Capacity Block: neither has room before it begins, or after it ended."""
    if fleet is None or fleet.reservation_id is None:
        return None
    block, name = account.reservation(fleet.reservation_id), fleet.reservation_id
    another = "`trn capacity` finds another: set trn:reservation_id, and run `trn deploy`"
    if block is None:
        return Absence(why=f"EC2 has no reservation {name}", way_on=another)
    if block.start and now < block.start and block.state != "active":
        return Absence(why=f"{name} begins at {utc_text(block.start)}", way_on="they come by themselves then")
    if block.state in ("expired", "cancelled", "failed", "unsupported") or (block.end and block.end <= now):
        return Absence(why=f"{name} is over ({block.state})", way_on=another)
    return None


def _of_the_group(fleet: DeployedFleet | None, account: AbsenceAccount) -> Absence | None:
    group = account.group(fleet.group) if fleet and fleet.group else None
    if group is None:
        return None
    if group.wanted == 0:
        return Absence(why="the desired size of their Auto Scaling group is 0", way_on=_WAKE)
    if not group.refusal:
        return Absence(why="none of them is launched yet", way_on="`trn nodes --watch` follows them")
    known = known_error(group.refusal)
    why = f"EC2 gives none ({known.name if known else group.refusal[:_LONGEST_REASON]})"
    return Absence(why=why, way_on=known.fix if known else "`trn capacity` shows where there is some")


def with_absences(found: ClusterList, account: AbsenceAccount, now: datetime) -> ClusterList:
    """The clusters, with why some of them have no nodes; where that could not be read, it is said."""
    absences, not_read = dict[str, Absence](), list(found.not_read)
    for cluster in found.clusters:
        try:
            if one := absence(cluster, account, now):
                absences[cluster.name] = one
        except UnavailableError as error:
            not_read.append(f"why {cluster.name} has no nodes: {error}")
    return replace(found, absences=absences, not_read=tuple(not_read))

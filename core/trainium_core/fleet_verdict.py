"""Whether a fleet is what was asked for: decided from what Auto Scaling says and what the nodes wrote."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from trainium_core.node_record import NodeRecord

# Launch failures that trying again cannot mend. A lack of capacity can end at any moment, so it is waited out.
_LASTING = re.compile(
    r"VcpuLimitExceeded|vCPU limit|MaxSpotInstanceCountExceeded|Max spot instance count|not supported|Unsupported|"
    r"Invalid|not authorized|UnauthorizedOperation|AccessDenied|not exist",
    re.IGNORECASE,
)

# An instance profile is not known everywhere at once after it is made, whatever words EC2 finds for that.
_PASSING = re.compile(r"InsufficientInstanceCapacity|IAM instance profile|iamInstanceProfile", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class FleetVerdict:
    """`ready`: every node proved itself; `failed`: it will not come to that; `waiting`: not yet. `reason` says more."""

    state: Literal["ready", "waiting", "failed"]
    reason: str


def fleet_verdict(
    *,
    nodes: int,
    instances: Sequence[str],
    records: Mapping[str, NodeRecord],
    failed_launches: Sequence[str],
) -> FleetVerdict:
    """Judge a fleet.

    nodes: how many are wanted. instances: ids of the group's instances now. records: by instance id, of any instance
    past or present. failed_launches: status messages of the scaling activities that failed since the deployment began,
    newest first.
    """
    instances = list(dict.fromkeys(instances))
    failed = [records[i] for i in instances if i in records and records[i].state == "failed"]
    if failed:
        return FleetVerdict(state="failed", reason="; ".join(f"node {r.instance_id}: {r.reason}" for r in failed[:5]))
    lasting = next((message for message in failed_launches if _is_lasting(message)), None)
    if lasting:
        return FleetVerdict(state="failed", reason=f"an instance could not be launched: {lasting}")
    proven = [i for i in instances if i in records]
    if len(proven) == len(instances) == nodes:
        return FleetVerdict(state="ready", reason=f"{nodes} of {nodes} nodes proven")
    progress = f"{len(proven)} of {nodes} nodes proven, {len(instances)} launched"
    silent = [i for i in instances if i not in records]
    if silent:
        progress += f"; no word from {', '.join(silent[:5])}{' and others' if len(silent) > 5 else ''}"
    if failed_launches and len(instances) < nodes:
        progress += f"; last failed launch: {failed_launches[0]}"
    return FleetVerdict(state="waiting", reason=progress)


def _is_lasting(message: str) -> bool:
    return _LASTING.search(message) is not None and _PASSING.search(message) is None

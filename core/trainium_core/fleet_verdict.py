"""Whether a fleet is what was asked for: decided from what Auto Scaling says and what the nodes wrote."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from trainium_core.node_record import NodeRecord

# Launch failures that trying again cannot mend, in EC2's words. A lack of capacity can end at any moment, and a new
# instance profile takes a while to be known everywhere: those are waited out.
_LASTING = re.compile(
    r"VcpuLimitExceeded|vCPU limit|MaxSpotInstanceCountExceeded|Max spot instance count|"
    r"not supported|Unsupported|InvalidParameter|InvalidAMIID|image id .* does not exist|"
    r"InvalidCapacityReservation|capacity reservation ID .* does not exist|"
    r"not authorized|UnauthorizedOperation|AccessDenied",
    re.IGNORECASE,
)
# The same codes come with these words when waiting does help.
_PASSING = re.compile(r"InsufficientInstanceCapacity|IAM ?Instance ?Profile", re.IGNORECASE)


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
    if lasting and len(instances) < nodes:
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

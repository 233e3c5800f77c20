"""Decides whether a fleet is ready, from its Auto Scaling group, its node records and consoles, and its membership."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from trainium_runtime.recovery import Recovery
from trainium_wire.membership import Membership
from trainium_wire.node_record import NodeRecord

# Permanent launch failures, in the words of EC2 and Auto Scaling. Missing capacity, and a new instance profile that is
# not yet visible everywhere, are temporary. Client.InternalError means that the KMS key of a volume cannot be used (AWS
# re:Post, "kms-iam-ec2-permission", read 2026-11-22).
_PERMANENT = re.compile(
    r"VcpuLimitExceeded|vCPU limit|current instance limit|MaxSpotInstanceCountExceeded|Max spot instance count|"
    r"not supported|Unsupported|InvalidParameter|InvalidAMIID|image id .* does not exist|"
    r"InvalidCapacityReservation|capacity reservation ID .* does not exist|"
    r"Client\.InternalError|Client error on launch|InvalidKMSKey|KMS key .* incorrect state|inaccessible AWS KMS key|"
    r"not authorized|UnauthorizedOperation|AccessDenied",
    re.IGNORECASE,
)
# With these words, the same codes are temporary.
_TRANSIENT = re.compile(r"InsufficientInstanceCapacity|IAM ?Instance ?Profile", re.IGNORECASE)

_NO_CAPACITY = re.compile(
    r"InsufficientInstanceCapacity|do not have sufficient .{0,60}capacity|no Spot capacity available", re.IGNORECASE
)

_QUOTA = re.compile(r"vCPU ?Limit|instance limit|Spot ?Instance ?Count", re.IGNORECASE)

# Without these, nodes are not launched, or failed nodes are not terminated. AWS suspends some of them if launches fail
# for 24 hours.
_NEEDED_PROCESSES = ("Launch", "Terminate", "HealthCheck", "ReplaceUnhealthy")

_NONE = "no nodes, as planned"
_NAMED = 5  # nodes or sentences named in a reason, because CloudFormation limits a response to 4,096 bytes


@dataclass(frozen=True, kw_only=True)
class FleetVerdict:
    """Whether a fleet is ready.

    Attributes:
        state: `ready` if the deployment can be completed, `failed` if it must fail, otherwise `waiting`.
        reason: Details for people.
        nodes: Number of verified nodes of a fleet that is ready; otherwise 0.
        lacks_capacity: Whether a fleet waits for instances that AWS does not have, other than replacements.
    """

    state: Literal["ready", "waiting", "failed"]
    reason: str
    nodes: int = 0
    lacks_capacity: bool = False


@dataclass(frozen=True, kw_only=True)
class Replacement:
    """Nodes that a deployment replaces with nodes of another template version or in another subnet.

    Attributes:
        outdated: Such nodes that are still in the group.
        ending: Such nodes, in the group or not, that EC2 has not terminated yet.
        launches_others: Whether, in a rollback, the group still launches another version than the wanted one.
    """

    outdated: Sequence[str] = ()
    ending: Sequence[str] = ()
    launches_others: bool = False

    @property
    def is_over(self) -> bool:
        return not (self.outdated or self.ending or self.launches_others)

    @property
    def sentence(self) -> str:
        if going := list(dict.fromkeys([*self.outdated, *self.ending])):
            return f"nodes to be terminated before others are launched: {_listed(going)}"
        return "the group does not launch the wanted version of its launch template yet"


@dataclass(frozen=True, kw_only=True)
class FleetView:
    """The state of a fleet at one moment.

    Attributes:
        nodes: Number of nodes wanted.
        instances: IDs of the group's instances that are not being terminated or detached.
        records: Records by instance ID, including earlier instances.
        recovery: The decision about failed nodes.
        leaving: Those of `instances` that Auto Scaling is replacing.
        membership: The last membership that was written.
        console: The last error on the consoles of nodes without a record, by instance ID, if there is one.
        failed_launches: Status messages of the launches that failed after the last success, and since the deployment
            began, newest first.
        still_counted: Whether quotas may still count instances that are being terminated, or were recently.
        suspended: Suspended processes of the Auto Scaling group.
        replaced: Failure reasons, by instance ID, of the instances that failed since the deployment began and have left
            the group.
        replacement: Nodes to be replaced by nodes of another version or in another subnet.
    """

    nodes: int
    instances: Sequence[str]
    records: Mapping[str, NodeRecord]
    recovery: Recovery
    leaving: Collection[str] = ()
    membership: Membership = field(default_factory=Membership)
    console: Mapping[str, str] = field(default_factory=dict[str, str])
    failed_launches: Sequence[str] = ()
    still_counted: bool = False
    suspended: Sequence[str] = ()
    replaced: Mapping[str, str] = field(default_factory=dict[str, str])
    replacement: "Replacement" = field(default_factory=lambda: Replacement())

    def in_state(self, state: str) -> list[NodeRecord]:
        records = (self.records.get(instance) for instance in dict.fromkeys(self.instances))
        return [record for record in records if record and record.state == state]

    @property
    def silent(self) -> list[str]:
        return [i for i in dict.fromkeys(self.instances) if i not in self.records and i not in self.leaving]


def group_size(nodes: int, replacement: Replacement) -> int:
    """The size that a group must have now: 0 until the replacement is over.

    All nodes are replaced at once: half a cluster is of no use, and a reservation may have no room for more nodes.
    """
    return nodes if replacement.is_over else 0


def fleet_verdict(view: FleetView) -> FleetVerdict:
    """Judge a fleet.

    It is ready if every planned node is verified and has reached all others, or if no node is planned and none is left.
    It has failed if a failed node is not replaced, if the console of a node without a record shows an error, or if an
    instance is missing after a permanent launch failure.
    """
    launched = len(set(view.instances))
    if view.nodes == 0:
        summary = f"no nodes are planned; {launched} still exist"
        return FleetVerdict(state="waiting", reason=summary) if launched else FleetVerdict(state="ready", reason=_NONE)
    if not view.replacement.is_over:
        return FleetVerdict(state="waiting", reason=view.replacement.sentence)
    if failed := _failed_for_good(view):
        before = f"; failed before, and replaced: {_grouped(view.replaced)}" if view.replaced else ""
        return FleetVerdict(state="failed", reason=f"{_grouped(failed)}{before}")
    permanent = next((message for message in view.failed_launches if _is_permanent(message, view)), None)
    if permanent and launched < view.nodes:
        return FleetVerdict(state="failed", reason=f"an instance could not be launched: {permanent}")
    verified = [record for record in view.in_state("verified") if record.instance_id not in view.leaving]
    if len(verified) == launched == view.nodes and not _unconnected(view):
        warned = {record.instance_id: record.warnings for record in verified if record.warnings}
        shown = f"; warnings: {_grouped(warned)}" if warned else ""
        reason = f"{view.nodes} of {view.nodes} nodes verified{shown}"
        return FleetVerdict(state="ready", reason=reason, nodes=view.nodes)
    progress = [f"{len(verified)} of {view.nodes} nodes verified, {launched} launched", *_pending(view)]
    return FleetVerdict(
        state="waiting", reason="; ".join(progress), lacks_capacity=launched < view.nodes and _lacks_capacity(view)
    )


def _lacks_capacity(view: FleetView) -> bool:
    # EC2 may give the place of a failed node back only some time after its termination.
    replaces = any(record.state == "failed" for record in view.records.values())
    return not replaces and bool(view.failed_launches) and _NO_CAPACITY.search(view.failed_launches[0]) is not None


def _failed_for_good(view: FleetView) -> dict[str, str]:
    """A sentence for each failed node that is not replaced, and for each silent node whose console has an error."""
    reasons = {record.instance_id: record.reason for record in view.in_state("failed")}
    failed = {i: _joined(why, view.recovery.sentence(i)) for i, why in reasons.items() if not view.recovery.replaces(i)}
    from_console = {
        i: f"{view.console[i]} (read from its console: it could not report)" for i in view.silent if i in view.console
    }
    return failed | from_console


def _pending(view: FleetView) -> Iterator[str]:
    failed = {record.instance_id: record.reason for record in view.in_state("failed")}
    if replaced := {i: _joined(reason, view.recovery.sentence(i)) for i, reason in failed.items()}:
        yield _grouped(replaced)
    if ending := {record.instance_id: f"draining: {record.reason}" for record in view.in_state("draining")}:
        yield _grouped(ending)
    if unhealthy := [i for i in view.leaving if i not in failed]:
        yield f"being replaced by Auto Scaling: {_listed(unhealthy)}"
    if stopped := [process for process in view.suspended if process in _NEEDED_PROCESSES]:
        yield f"processes of the Auto Scaling group are suspended; resume them: {', '.join(stopped)}"
    if view.silent:
        yield f"no record yet from {_listed(view.silent)}"
    launched = len(set(view.instances))
    if launched > view.nodes:
        yield f"{launched - view.nodes} more than planned still exist"
    if launched == view.nodes == len(view.in_state("verified")) and (unconnected := _unconnected(view)):
        yield f"nodes that have not reached all others yet: {_listed(unconnected)}"
    if view.failed_launches and launched < view.nodes:
        yield f"last failed launch: {view.failed_launches[0]}"


def _unconnected(view: FleetView) -> list[str]:
    """The verified nodes that have not reached all other current nodes yet."""
    if view.nodes == 1:
        return []
    current = view.membership.version if view.membership.instance_ids == frozenset(view.instances) else None
    return [r.instance_id for r in view.in_state("verified") if r.membership != current]


def _grouped(sentences: Mapping[str, str]) -> str:
    """Each sentence once, with its nodes."""
    nodes: dict[str, list[str]] = {}
    for instance, sentence in sentences.items():
        nodes.setdefault(sentence, []).append(instance)
    groups = [f"node{'s' if len(ids) > 1 else ''} {_listed(ids)}: {sentence}" for sentence, ids in nodes.items()]
    rest = sum(len(ids) for ids in list(nodes.values())[_NAMED:])
    return "; ".join([*groups[:_NAMED], *([f"and {rest} more, for other reasons"] if rest else [])])


def _listed(instances: Sequence[str]) -> str:
    return f"{', '.join(instances[:_NAMED])}{' and others' if len(instances) > _NAMED else ''}"


def _joined(reason: str, consequence: str) -> str:
    return f"{reason}; {consequence}" if consequence else reason


def _is_permanent(message: str, view: FleetView) -> bool:
    if _PERMANENT.search(message) is None or _TRANSIENT.search(message):
        return False
    # The quota has room again once EC2 no longer counts the terminated nodes.
    replacing = any(r.state == "failed" for i, r in view.records.items() if i not in view.instances)
    return not ((replacing or view.still_counted) and _QUOTA.search(message))

"""The report on the nodes of a cluster.

It follows the rules of the controller, except for nodes that start with jobs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from trainium_runtime.errors import UnavailableError
from trainium_runtime.fleet_verdict import FleetVerdict, FleetView, fleet_verdict
from trainium_runtime.recovery import WINDOW, Recovery, plan_recovery
from trainium_wire.membership import Membership
from trainium_wire.metric_sample import NOT_MEASURED, RecentMetrics
from trainium_wire.node_record import CheckRecord, StoredRecord, failures


class NodesNotCreatedError(UnavailableError):
    """The group of the nodes, or the bucket of their records, does not exist yet or has been deleted.

    Attributes:
        status: Status of the stack.
    """

    def __init__(self, stack: str, status: str) -> None:
        super().__init__(
            f"the stack {stack} is in {status}: the group of its nodes or the bucket of their records does not exist"
        )
        self.status = status


class NoFleetError(UnavailableError):
    """A stack has no nodes."""


@dataclass(frozen=True, kw_only=True)
class NodeInstance:
    """An instance of the cluster's group.

    Attributes:
        instance_id: ID of the instance.
        zone: Availability Zone ID, or name if EC2 does not return the ID; empty if EC2 returns neither.
        address: Private IPv4 address; empty if EC2 returns none.
        state: EC2's state.
        launched: Launch time, if EC2 returns it.
        leaving: Whether Auto Scaling is replacing the instance.
    """

    instance_id: str
    zone: str
    address: str
    state: str
    launched: datetime | None
    leaving: bool


def node_instance(instance_id: str, described: Mapping[str, Any], *, leaving: bool = False) -> NodeInstance:
    """An instance, from EC2's description, which is empty if EC2 does not return the instance."""
    placement = described.get("Placement", {})
    return NodeInstance(
        instance_id=instance_id,
        zone=placement.get("AvailabilityZoneId") or placement.get("AvailabilityZone", ""),
        address=described.get("PrivateIpAddress", ""),
        state=described.get("State", {}).get("Name", "unknown to EC2"),
        launched=described.get("LaunchTime"),
        leaving=leaving,
    )


@dataclass(frozen=True, kw_only=True)
class ServiceGroup:
    """A group whose nodes a service starts for jobs.

    Attributes:
        least: Minimum number of nodes, which run even if there is no job.
        most: Maximum number of nodes.
        instances: The current instances.
    """

    least: int
    most: int
    instances: tuple[NodeInstance, ...]


@dataclass(frozen=True, kw_only=True)
class JobBounds:
    """The size limits of a group whose nodes start with jobs.

    Attributes:
        most: Current maximum number of nodes.
        planned: Maximum number of nodes in the template.
    """

    most: int
    planned: int


@dataclass(frozen=True, kw_only=True)
class DeployedNodes:
    """The observed nodes.

    Attributes:
        wanted: Desired size of the group; if nodes start with jobs, its minimum size.
        instances: The instances of the group.
        records: Records of current and former nodes, by instance ID.
        membership: The current membership.
        suspended: Suspended processes of the group.
        for_jobs: Size limits if nodes start with jobs; None otherwise.
        templates: Launch template and version of the instances by ID, as
            `trainium_runtime.node_store.template_version`.
        metrics: Current metrics of the instances that report any, by ID.
    """

    wanted: int
    instances: tuple[NodeInstance, ...]
    records: Mapping[str, StoredRecord]
    membership: Membership
    suspended: tuple[str, ...] = ()
    for_jobs: JobBounds | None = None
    templates: Mapping[str, str] = field(default_factory=dict[str, str])
    metrics: Mapping[str, RecentMetrics] = field(default_factory=dict[str, RecentMetrics])


def template_sentence(templates: Mapping[str, str], newest: int) -> str | None:
    """A sentence about nodes that do not run the newest version of their launch template; None if all run it.

    Args:
        templates: Launch template and version of each node, by ID.
        newest: Number of the newest version.
    """
    older = [number for one in templates.values() if (number := one.rpartition(":")[2]) != str(newest)]
    if not older:
        return None
    versions = ", ".join(sorted(set(older)))
    return (
        f"{len(older)} of {len(templates)} nodes run version {versions} of the launch template; the newest is version "
        f"{newest}. To use it, raise trn:node_generation (in an app: node_generation), and deploy: "
        "this replaces the nodes"
    )


@dataclass(frozen=True, kw_only=True)
class NodeStatus:
    """One node.

    Attributes:
        state: verified, failed, draining, booting (no record yet), leaving (being replaced), or EC2's state.
        since: Time of the node's record; None without a record.
        launched: Launch time, if EC2 returns it.
        problem: What is wrong, or what the node waits for; empty otherwise.
        checks: The checks in the node's record.
        metrics: Current metrics of the devices.
    """

    instance_id: str
    zone: str
    address: str
    state: str
    since: datetime | None
    launched: datetime | None
    problem: str
    checks: tuple[CheckRecord, ...]
    metrics: RecentMetrics = NOT_MEASURED


@dataclass(frozen=True, kw_only=True)
class GoneNode:
    """A failed node that is no longer in the group.

    Attributes:
        instance_id: ID of the instance.
        since: Time of the node's record.
        reason: The problem in the record.
    """

    instance_id: str
    since: datetime
    reason: str


@dataclass(frozen=True, kw_only=True)
class NodesReport:
    """The report.

    Attributes:
        nodes: Every node of the group, in the order of the group's instances.
        verdict: The verdict on the fleet, as in a deployment, unless the cluster sleeps or its nodes start with jobs.
        membership: The current membership.
        asleep: Whether the group has and wants no nodes.
        gone: Failed nodes that are no longer in the group, newest first.
        replaced: Number of nodes that failed in the last 24 hours and have left the group, or are leaving it.
    """

    nodes: tuple[NodeStatus, ...]
    verdict: FleetVerdict
    membership: Membership
    asleep: bool
    gone: tuple[GoneNode, ...] = ()
    replaced: int = 0

    @property
    def is_final(self) -> bool:
        """Whether there is nothing to wait for: the nodes are ready, have failed, or sleep."""
        return self.asleep or self.verdict.state != "waiting"


def nodes_report(deployed: DeployedNodes, *, replacements: int) -> NodesReport:
    """Determine the state of the nodes.

    Args:
        deployed: The observed nodes.
        replacements: Maximum number of failed nodes that are replaced in any 24 hours.
    """
    instances = tuple(node.instance_id for node in deployed.instances)
    leaving = frozenset(node.instance_id for node in deployed.instances if node.leaving)
    recovery = plan_recovery(
        failures=failures(deployed.records), instances=instances, leaving=leaving, limit=replacements
    )
    verdict = fleet_verdict(
        FleetView(
            nodes=deployed.wanted,
            instances=instances,
            leaving=leaving,
            records={instance: stored.record for instance, stored in deployed.records.items()},
            recovery=recovery,
            membership=deployed.membership,
            suspended=deployed.suspended,
        )
    )
    nodes = tuple(_status(node, deployed, recovery) for node in deployed.instances)
    asleep = deployed.wanted == 0 and not instances and deployed.for_jobs is None
    if asleep:
        verdict = FleetVerdict(state="waiting", reason="asleep: the group has no nodes")
    elif deployed.for_jobs is not None:
        verdict = _verdict_with_jobs(nodes, deployed.wanted, deployed.for_jobs)
    gone = sorted(
        (
            GoneNode(instance_id=instance, since=stored.written, reason=stored.record.reason)
            for instance, stored in deployed.records.items()
            if stored.record.state == "failed" and (instance not in instances or instance in leaving)
        ),
        key=lambda node: (node.since, node.instance_id),
        reverse=True,
    )
    since = datetime.now(UTC) - WINDOW
    return NodesReport(
        nodes=nodes,
        verdict=verdict,
        membership=deployed.membership,
        asleep=asleep,
        gone=tuple(node for node in gone if node.instance_id not in instances),
        replaced=sum(node.since > since for node in gone),
    )


def _verdict_with_jobs(nodes: Sequence[NodeStatus], least: int, bounds: JobBounds) -> FleetVerdict:
    """The verdict on nodes that start with jobs, where each node is verified by itself."""
    if bounds.most < bounds.planned:
        lowered = f"the maximum of the group is {bounds.most}, not {bounds.planned}: jobs that need more nodes wait"
        why = "the warning on the cluster's SNS topic has the last failure and the command that raises the maximum"
        return FleetVerdict(state="failed", reason=f"{lowered}; {why}")
    failed = [node.instance_id for node in nodes if node.state == "failed"]
    if failed:
        return FleetVerdict(state="failed", reason=f"failed: {', '.join(failed)}")
    verified = sum(node.state == "verified" for node in nodes)
    wanted = max(least, len(nodes))
    state = "ready" if verified == wanted else "waiting"
    found = f"{verified} of {wanted} nodes verified" if wanted else "no nodes, since no job needs any"
    return FleetVerdict(state=state, reason=f"{found}; jobs start up to {bounds.most}")


def _status(node: NodeInstance, deployed: DeployedNodes, recovery: Recovery) -> NodeStatus:
    stored = deployed.records.get(node.instance_id)
    state, problem = _state(node, stored, recovery)
    if (
        state == "verified"
        and stored
        and deployed.wanted > 1
        and stored.record.membership != deployed.membership.version
    ):
        problem = "has not yet reached all others"
    if state == "verified" and stored and stored.record.warnings:
        problem = "; ".join(part for part in (problem, f"warning: {stored.record.warnings}") if part)
    return NodeStatus(
        instance_id=node.instance_id,
        zone=node.zone,
        address=node.address,
        state=state,
        since=stored.written if stored else None,
        launched=node.launched,
        problem=problem,
        checks=stored.record.checks if stored else (),
        metrics=deployed.metrics.get(node.instance_id, NOT_MEASURED),
    )


def _state(node: NodeInstance, stored: StoredRecord | None, recovery: Recovery) -> tuple[str, str]:
    reason = stored.record.reason if stored else ""
    if stored and stored.record.state == "failed":
        return "failed", "; ".join(part for part in (reason, recovery.sentence(node.instance_id)) if part)
    if node.leaving:
        return "leaving", "; ".join(part for part in (reason, "Auto Scaling replaces it") if part)
    if stored:
        return stored.record.state, reason
    if node.state in ("pending", "running"):
        return "booting", ""
    return node.state, ""


def report_as_json(report: NodesReport, *, only: str | None = None) -> Mapping[str, object]:
    """The report as JSON.

    Args:
        report: The report.
        only: ID of the only node to include. Default: all nodes.
    """
    return {
        "state": report.verdict.state,
        "summary": report.verdict.reason,
        "membership": report.membership.version,
        "nodes": [
            {
                **{name: getattr(node, name) for name in ("instance_id", "zone", "address", "state", "problem")},
                "since": node.since.isoformat() if node.since else None,
                "launched": node.launched.isoformat() if node.launched else None,
                "checks": [vars(check) for check in node.checks],
                "metrics": vars(node.metrics),
            }
            for node in report.nodes
            if only in (None, node.instance_id)
        ],
        "replaced_in_24_hours": report.replaced,
        "gone": [
            {"instance_id": node.instance_id, "since": node.since.isoformat(), "reason": node.reason}
            for node in report.gone
            if only in (None, node.instance_id)
        ],
    }

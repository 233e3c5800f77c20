"""Decides what a deployment does with the group: its size, the replacement of nodes, and whether the fleet is ready."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any

from trainium_runtime.controller.nodes import group_recovery
from trainium_runtime.controller.snapshot import Snapshot
from trainium_runtime.fleet_verdict import FleetVerdict, FleetView, Replacement, fleet_verdict, group_size
from trainium_runtime.node_store import Group
from trainium_runtime.pilot_clock import ClockDecision

_LOOKS_THAT_AGREE = 3  # Auto Scaling may briefly return an earlier state
_COUNTED_AFTER_END = timedelta(minutes=10)  # AWS publishes no figure; large hosts take minutes to shut down


@dataclass(frozen=True, kw_only=True)
class FleetDeployment:
    """What a deployment wants.

    Attributes:
        nodes: Number of nodes; 0 while the cluster sleeps.
        template: Their launch template and version, as `trainium_runtime.node_store.template_version`.
        subnet: Their subnet. Nodes of another template, version or subnet are replaced.
        replacements: Maximum number of failed nodes that are replaced in any 24 hours.
        since: Earlier failed launches belong to another deployment. None: there was none.
        in_rollback: Whether the stack is being rolled back, so the group gets its former nodes.
        after_response: Whether CloudFormation got the response already. Only in a rollback.
    """

    nodes: int
    template: str
    subnet: str
    replacements: int = 0
    since: datetime | None = None
    in_rollback: bool = False
    after_response: bool = False


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What the looks of one deployment share.

    Attributes:
        sized_to: The size that the deployment gave the group; any other size was set elsewhere.
        ended: The nodes that are terminated to be replaced.
        launched: Whether nodes were launched, so that no more are terminated.
        other_sizes: Number of the last looks in a row that found a size which was set elsewhere.
    """

    sized_to: int | None = None
    ended: frozenset[str] = frozenset()
    launched: bool = False
    other_sizes: int = 0

    def to_json(self) -> Mapping[str, Any]:
        return {**vars(self), "ended": sorted(self.ended)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Progress":
        values: dict[str, Any] = {**stored, "ended": frozenset(stored["ended"])}
        return cls(**values)


@dataclass(frozen=True, kw_only=True)
class DeploymentDecision:
    """The decision of one look.

    Attributes:
        size: The desired size of the group; None if it stays.
        replacement: Nodes to be replaced by nodes of another version or in another subnet.
        superseded: Whether another deployment manages the nodes now, so this one does nothing.
    """

    verdict: FleetVerdict
    progress: Progress
    size: int | None = None
    replacement: Replacement = field(default_factory=Replacement)
    superseded: bool = False


def decide(
    snapshot: Snapshot, deployment: FleetDeployment, progress: Progress, clock: ClockDecision | None = None
) -> DeploymentDecision:
    """Decide about the group.

    Args:
        clock: The decision of the pilot's clock. None: it does not decide, and the deployment alone does.

    Raises:
        ValueError: The snapshot has no group or no stack.
    """
    group, stack = snapshot.group, snapshot.stack
    if group is None or stack is None:
        raise ValueError("a deployment needs a snapshot with a group and a stack")
    if stack.is_rolling_back is not deployment.in_rollback:
        reason = "a later deployment manages the nodes" if deployment.in_rollback else "the deployment is rolled back"
        verdict = FleetVerdict(state="failed", reason=reason)
        return DeploymentDecision(verdict=verdict, progress=progress, superseded=True)
    # In a rollback, the clock may still have the new number.
    nodes = deployment.nodes if clock is None else min(deployment.nodes, clock.nodes)
    replacement = Replacement()
    if nodes and not progress.launched:
        replacement, progress = _replacement(snapshot, group, deployment, progress)
    size = None
    if not replacement.is_over:
        size = group_size(nodes, replacement)
    elif deployment.after_response and group.desired == nodes:
        verdict = FleetVerdict(state="ready", reason=f"{nodes} former nodes are being launched")
        return DeploymentDecision(verdict=verdict, progress=progress, replacement=replacement)
    elif group.desired == nodes:
        progress = replace(progress, sized_to=nodes, other_sizes=0)
    elif progress.sized_to == nodes:
        progress = replace(progress, other_sizes=progress.other_sizes + 1)
        if progress.other_sizes >= _LOOKS_THAT_AGREE:
            reason = (
                f"the desired size of the group became {group.desired} while the deployment waited for {nodes} nodes"
            )
            return DeploymentDecision(verdict=FleetVerdict(state="ready", reason=reason), progress=progress)
    else:
        size = nodes
    if nodes and replacement.is_over:
        progress = replace(progress, launched=True)
    verdict = fleet_verdict(_view(snapshot, group, deployment, nodes, replacement))
    if not nodes:
        why = clock.why if clock and deployment.nodes else "the cluster is asleep"
        verdict = replace(verdict, reason=f"{verdict.reason}: {why}")
    return DeploymentDecision(
        verdict=verdict, progress=progress, size=None if size == group.desired else size, replacement=replacement
    )


def _replacement(
    snapshot: Snapshot, group: Group, deployment: FleetDeployment, progress: Progress
) -> tuple[Replacement, Progress]:
    described, subnet = snapshot.instances, deployment.subnet
    outdated = tuple(
        i
        for i in group.instances
        if group.launched[i] != deployment.template or described.get(i, {}).get("SubnetId", subnet) != subnet
    )
    progress = replace(progress, ended=progress.ended | frozenset(outdated))
    ending = (i for i in sorted(progress.ended) if i in described and described[i]["State"]["Name"] != "terminated")
    replacement = Replacement(
        outdated=outdated,
        ending=tuple(ending),
        # Only in a rollback, because CloudFormation may then change the group after this resource. In any other
        # deployment, a difference means that the app has overridden the launch template of the group.
        launches_others=deployment.in_rollback and group.launches != deployment.template,
    )
    return replacement, progress


def _view(
    snapshot: Snapshot, group: Group, deployment: FleetDeployment, nodes: int, replacement: Replacement
) -> FleetView:
    return FleetView(
        nodes=nodes,
        instances=group.instances,
        leaving=group.leaving,
        records={instance: stored.record for instance, stored in snapshot.records.items()},
        recovery=group_recovery(snapshot, group, deployment.replacements),
        membership=snapshot.membership.membership,
        console=snapshot.consoles,
        failed_launches=failed_launches(snapshot.activities, deployment.since),
        still_counted=ended_recently(snapshot.activities, snapshot.now),
        suspended=group.suspended,
        replacement=replacement,
        replaced={
            instance: snapshot.records[instance].record.reason
            for instance, at in snapshot.failures.items()
            if instance not in group.instances and (deployment.since is None or at >= deployment.since)
        },
    )


def failed_launches(activities: Sequence[Mapping[str, Any]], since: datetime | None) -> list[str]:
    """Messages of the launches that failed after the last one that succeeded or is in progress, newest first.

    A launch whose instance ended before it was in service is cancelled, with the reason in its message.

    Args:
        activities: The group's scaling activities, newest first.
        since: Earlier launches do not count. None: all count.
    """
    launches = [activity for activity in activities if activity["Description"].startswith("Launching")]
    failed = takewhile(_has_failed, launches)
    return [launch.get("StatusMessage", "") for launch in failed if since is None or launch["StartTime"] >= since]


def _has_failed(launch: Mapping[str, Any]) -> bool:
    return launch["StatusCode"] == "Failed" or (launch["StatusCode"] == "Cancelled" and "StatusMessage" in launch)


def ended_recently(activities: Sequence[Mapping[str, Any]], now: datetime) -> bool:
    """Whether an instance of the group is ending, or ended so recently that EC2 may still count it in quotas."""
    ends = [
        activity.get("EndTime", now) for activity in activities if activity["Description"].startswith("Terminating")
    ]
    return any(end > now - _COUNTED_AFTER_END for end in ends)

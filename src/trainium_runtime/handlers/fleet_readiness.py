"""Custom::TrnFleetGate: sets the size of an Auto Scaling group, and waits until its nodes are proven and connected.

It replaces nodes of another launch template version or subnet: the size is 0 until EC2 has terminated them. At its
deletion it terminates the nodes. It responds to a rollback at once, and replaces nodes afterwards. An invocation lasts
at most 15 minutes, so the function invokes itself again while it has to wait.
"""

import json
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import Any

from trainium_runtime.fleet_verdict import FleetVerdict, FleetView, Replacement, fleet_verdict, group_size
from trainium_runtime.node_store import Group, NodeStore, describe_group, describe_instances
from trainium_runtime.recovery import plan_recovery
from trainium_wire.node_record import failures

from .cluster_snapshot import find_group
from .console import Consoles
from .custom_resource import respond
from .log import log
from .pilot_clock import GATE_EVENT
from .rollback import is_rolling_back

_LONGEST_PAUSE_S = 15.0
_MARGIN_S = 60.0
_ERRORS_IN_A_ROW = 8  # about a minute, until new permissions are effective
_POLLS_THAT_AGREE = 3  # Auto Scaling may briefly return an earlier state
_COUNTED_AFTER_END = timedelta(minutes=10)  # AWS publishes no figure; large hosts take minutes to shut down
_STARTED = "GateStarted"
"""Key in the event: when the function was first invoked for it, in seconds since 1970."""

_RESTORES = "Restores"
"""Key in the event with which the function invokes itself after its response to a rollback."""


def handle(event: dict[str, Any], context: Any) -> None:
    if event["RequestType"] == "Delete":
        if not _continues_deletion(event, context):
            respond(event, physical_id=event["PhysicalResourceId"])
        return
    physical_id = f"{event['ResourceProperties']['GroupName']}/gate"
    if event.get(_RESTORES):
        log(decide(event, context).reason)
        return
    # A deployment that is already waiting is not the rollback.
    if event["RequestType"] == "Update" and _STARTED not in event and is_rolling_back(event["StackId"]):
        summary = f"after a rollback: {_roll_back(event, context)}"
        log(summary)
        respond(event, physical_id=physical_id, data={"Summary": summary})
        return
    try:
        verdict = decide(event, context)
    except Exception as error:  # CloudFormation needs a response
        respond(event, failure=f"the fleet could not be watched: {error}", physical_id=physical_id)
        return
    if verdict.state == "ready":
        respond(event, physical_id=physical_id, data={"Summary": verdict.reason})
    elif verdict.state == "failed":
        respond(event, failure=verdict.reason, physical_id=physical_id)


def _continues_deletion(event: dict[str, Any], context: Any) -> bool:
    """Terminate the nodes. Errors do not stop the deletion: a later resource then fails with a clearer message.

    Returns:
        Whether another invocation continues to wait.
    """
    try:
        deadline, end_of_invocation = _deadline(event), _invocation_end(context)
        if terminate_nodes(event["ResourceProperties"], until=min(deadline, end_of_invocation)):
            return False
        if end_of_invocation < deadline:
            _call_again(event, context)
            return True
        minutes = event["ResourceProperties"]["TimeoutMinutes"]
        log(f"the nodes were not terminated within {minutes} minutes; the deletion continues")
    except Exception as error:
        log(f"the nodes could not be terminated, or their termination could not be read: {error}")
    return False


def terminate_nodes(properties: dict[str, Any], *, until: float) -> bool:
    """Terminate every node of the group, and wait.

    An instance leaves its Auto Scaling group before EC2 has terminated it, and until then EC2 does not delete its
    placement group (InvalidPlacementGroup.InUse; github.com/hashicorp/terraform-provider-aws, issue 21460). On trn1 and
    trn1n this can take more than 15 minutes (github.com/aws/aws-parallelcluster, pull request 6373).

    Args:
        until: When to stop waiting, in seconds since 1970.

    Returns:
        Whether all nodes are terminated.
    """
    import boto3

    name = properties["GroupName"]
    autoscaling: Any = boto3.client("autoscaling")
    ec2: Any = boto3.client("ec2")
    while remaining := _terminate_and_count(autoscaling, ec2, name):
        log(f"{remaining} nodes are being terminated")
        if time.time() + _LONGEST_PAUSE_S > until:
            return False
        time.sleep(_LONGEST_PAUSE_S)
    return True


def _terminate_and_count(autoscaling: Any, ec2: Any, name: str) -> int:
    """Set the size to 0, which the restoration after a rollback may have changed. Returns how many nodes are left."""
    group = find_group(autoscaling, name)
    if group is None:
        return 0
    if group["DesiredCapacity"]:
        autoscaling.set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=0, HonorCooldown=False)
    return sum(i["State"]["Name"] != "terminated" for i in describe_instances(ec2, name).values())


def _roll_back(event: dict[str, Any], context: Any) -> str:
    """Set the size of the group without waiting, and return a summary of its nodes.

    Another invocation replaces nodes of another version after the response: their termination can take long, and
    CloudFormation may roll back this resource before the group that it depends on.
    """
    try:
        monitor = _monitor(event, in_rollback=True)
        verdict = monitor.poll()
        if not monitor.replacement.is_over:
            _call_again({**event, **monitor.memory, _RESTORES: True}, context)
        return verdict.reason
    except Exception as error:  # an error must not stop a rollback
        return f"the state of the fleet could not be read: {error}"


def decide(event: dict[str, Any], context: Any) -> FleetVerdict:
    """Poll until the fleet is ready or has failed, up to the time limits of this invocation and of the resource.

    Returns:
        The verdict. `waiting` if the function has invoked itself to continue; `failed` after the resource's time limit.
    """
    deadline, end_of_invocation = _deadline(event), _invocation_end(context)
    monitor = _monitor(event, in_rollback=bool(event.get(_RESTORES)))
    verdict = wait(monitor, until=min(deadline, end_of_invocation))
    event.update(monitor.memory)
    if verdict.state != "waiting":
        return verdict
    if end_of_invocation < deadline:
        _call_again(event, context)
        return verdict
    minutes = event["ResourceProperties"]["TimeoutMinutes"]
    return FleetVerdict(state="failed", reason=f"after {minutes} minutes: {verdict.reason}")


def _monitor(event: dict[str, Any], *, in_rollback: bool) -> "_FleetMonitor":
    _deadline(event)  # stores the start of the first invocation
    return _FleetMonitor(event, in_rollback=in_rollback)


def _deadline(event: dict[str, Any]) -> float:
    """The deadline of this resource over all invocations, in seconds since 1970."""
    started = float(event.setdefault(_STARTED, time.time()))
    return started + 60 * float(event["ResourceProperties"]["TimeoutMinutes"])


def _invocation_end(context: Any) -> float:
    return time.time() + context.get_remaining_time_in_millis() / 1000 - _MARGIN_S


def wait(monitor: "_FleetMonitor", *, until: float) -> FleetVerdict:
    """Poll until the fleet is ready or has failed.

    Args:
        until: When to stop polling, in seconds since 1970.

    Raises:
        ClientError: AWS refused too many polls in a row.
        BotoCoreError: AWS was not reached in too many polls in a row.
        ClockError: The clock failed in too many polls in a row.
        NoGroupError: The group does not exist.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    pause, errors = 0.5, 0
    while True:
        try:
            verdict = monitor.poll()
            errors = 0
        except (BotoCoreError, ClientError, ClockError) as error:
            errors += 1
            if errors > _ERRORS_IN_A_ROW:
                raise
            verdict = FleetVerdict(state="waiting", reason=f"the state of the fleet could not be read: {error}")
        log(f"{verdict.state}: {verdict.reason}")
        if verdict.state != "waiting" or time.time() + pause > until:
            return verdict
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_S)


class ClockError(Exception):
    """The clock of the pilot did not return the number of nodes."""


class _FleetMonitor:
    """Polls the fleet.

    Args:
        in_rollback: Whether the stack is being rolled back, so the group gets its former nodes.

    Attributes:
        memory: The state that invocations for one event share. SizedTo is the size that this deployment gave the group;
            any other size was set elsewhere. Ended lists the nodes that are terminated to be replaced. Once Launched is
            true, no more nodes are terminated.
        replacement: The nodes to replace, as of the last poll.
    """

    def __init__(self, event: dict[str, Any], *, in_rollback: bool) -> None:
        import boto3

        self._properties = properties = event["ResourceProperties"]
        self._autoscaling: Any = boto3.client("autoscaling")
        self._ec2: Any = boto3.client("ec2")
        self._lambda: Any = boto3.client("lambda")
        self._store = NodeStore(boto3.client("s3"), properties["RecordsBucket"], properties["RecordsPrefix"])
        self._consoles = Consoles(self._ec2)
        self._stack_id, self._in_rollback, self._restores = event["StackId"], in_rollback, bool(event.get(_RESTORES))
        started = datetime.fromtimestamp(event[_STARTED], UTC)
        # Earlier failed launches belong to another deployment.
        self._since = started if event["RequestType"] == "Update" else None
        self._sized_to: int | None = event.get("SizedTo")
        self._ended: set[str] = set(event.get("Ended", ()))
        self._launched = bool(event.get("Launched"))
        self._polls_with_another_size = 0
        self.replacement = Replacement()

    @property
    def memory(self) -> dict[str, Any]:
        return {"SizedTo": self._sized_to, "Ended": sorted(self._ended), "Launched": self._launched}

    def poll(self) -> FleetVerdict:
        if is_rolling_back(self._stack_id, unknown=self._in_rollback) is not self._in_rollback:
            later = "a later deployment manages the nodes" if self._in_rollback else "the deployment is rolled back"
            return FleetVerdict(state="failed", reason=later)
        nodes, why = self._nodes_now()
        group = describe_group(self._autoscaling, self._properties["GroupName"])
        self.replacement = self._replacement(group) if nodes and not self._launched else Replacement()
        if not self.replacement.is_over:
            self._resize(group.desired, group_size(nodes, self.replacement))
        elif self._restores and group.desired == nodes:
            return FleetVerdict(state="ready", reason=f"{nodes} former nodes are being launched")
        elif self._is_resized_by_others(group.desired, nodes):
            summary = (
                f"the desired size of the group became {group.desired} while the deployment waited for {nodes} nodes"
            )
            return FleetVerdict(state="ready", reason=summary)
        self._launched = self._launched or (nodes > 0 and self.replacement.is_over)
        verdict = self._evaluate(group, nodes)
        if verdict.state == "waiting":
            # Records invoke the reconciler, but a smaller group or a raised limit does not.
            self._lambda.invoke(FunctionName=self._properties["Reconciler"], InvocationType="Event", Payload=b"{}")
        return verdict if nodes else replace(verdict, reason=f"{verdict.reason}: {why}")

    def _is_resized_by_others(self, desired: int, nodes: int) -> bool:
        """Set the size of the group once. Returns whether several later polls in a row found another size."""
        if desired == nodes:
            self._sized_to, self._polls_with_another_size = nodes, 0
            return False
        if self._sized_to == nodes:
            self._polls_with_another_size += 1
            return self._polls_with_another_size >= _POLLS_THAT_AGREE
        self._resize(desired, nodes)
        return False

    def _resize(self, desired: int, size: int) -> None:
        if desired != size:
            name = self._properties["GroupName"]
            self._autoscaling.set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=size, HonorCooldown=False)
            log(f"the desired size of the group was {desired} and is now {size}")

    def _replacement(self, group: Group) -> Replacement:
        template = f"{self._properties['LaunchTemplateId']}:{self._properties['LaunchTemplateVersion']}"
        subnet, gone = self._properties["SubnetId"], {"State": {"Name": "terminated"}}
        described = describe_instances(self._ec2, self._properties["GroupName"])
        outdated = tuple(
            i
            for i in group.instances
            if group.launched[i] != template or described.get(i, {}).get("SubnetId", subnet) != subnet
        )
        self._ended.update(outdated)
        return Replacement(
            outdated=outdated,
            ending=tuple(i for i in sorted(self._ended) if described.get(i, gone)["State"]["Name"] != "terminated"),
            # Only in a rollback, because CloudFormation may then change the group after this resource. In any other
            # deployment, a difference means that the app has overridden the launch template of the group.
            launches_others=self._in_rollback and group.launches != template,
        )

    def _evaluate(self, group: Group, nodes: int) -> FleetVerdict:
        name = self._properties["GroupName"]
        stored = self._store.records()
        failed = failures(stored)
        activities = self._autoscaling.describe_scaling_activities(AutoScalingGroupName=name)["Activities"]
        return fleet_verdict(
            FleetView(
                nodes=nodes,
                instances=group.instances,
                leaving=group.leaving,
                records={instance: entry.record for instance, entry in stored.items()},
                recovery=plan_recovery(
                    failures=failed,
                    instances=group.instances,
                    leaving=group.leaving,
                    limit=int(self._properties["Replacements"]),
                ),
                membership=self._store.membership().membership,
                console=self._consoles.failures([i for i in group.instances if i not in stored], now=time.time()),
                failed_launches=failed_launches(activities, self._since),
                still_counted=ended_recently(activities, datetime.fromtimestamp(time.time(), UTC)),
                suspended=group.suspended,
                replacement=self.replacement,
                replaced={
                    instance: stored[instance].record.reason
                    for instance, at in failed.items()
                    if instance not in group.instances and (self._since is None or at >= self._since)
                },
            )
        )

    def _nodes_now(self) -> tuple[int, str]:
        """The number of nodes now, and the reason if it is 0."""
        nodes, clock = int(self._properties["Nodes"]), self._properties.get("Clock")
        if nodes == 0 or clock is None:
            return nodes, "the cluster is asleep"
        response = self._lambda.invoke(FunctionName=clock, Payload=json.dumps(GATE_EVENT).encode())
        result = json.loads(response["Payload"].read())
        if response.get("FunctionError"):
            raise ClockError(f"the clock of the pilot failed: {result.get('errorMessage', 'no reason given')}")
        # In a rollback the clock may still have the new number.
        return min(nodes, result["nodes"]), result["why"]


def failed_launches(activities: list[dict[str, Any]], since: datetime | None) -> list[str]:
    """Messages of the launches that failed after the last one that succeeded or is in progress, newest first.

    A launch whose instance ended before it was in service is cancelled, with the reason in its message.

    Args:
        activities: The group's scaling activities, newest first.
        since: Earlier launches do not count. None: all count.
    """
    launches = [activity for activity in activities if activity["Description"].startswith("Launching")]
    failed = takewhile(_has_failed, launches)
    return [launch.get("StatusMessage", "") for launch in failed if since is None or launch["StartTime"] >= since]


def _has_failed(launch: dict[str, Any]) -> bool:
    return launch["StatusCode"] == "Failed" or (launch["StatusCode"] == "Cancelled" and "StatusMessage" in launch)


def ended_recently(activities: list[dict[str, Any]], now: datetime) -> bool:
    """Whether an instance of the group is ending, or ended so recently that EC2 may still count it in quotas."""
    ends = [
        activity.get("EndTime", now) for activity in activities if activity["Description"].startswith("Terminating")
    ]
    return any(end > now - _COUNTED_AFTER_END for end in ends)


def _call_again(event: dict[str, Any], context: Any) -> None:
    import boto3

    client: Any = boto3.client("lambda")
    client.invoke(FunctionName=context.invoked_function_arn, InvocationType="Event", Payload=json.dumps(event).encode())

"""Custom::TrnFleetReadiness: sets the size of an Auto Scaling group, and waits until its nodes are verified.

It replaces nodes of another launch template version or subnet: the size is 0 until EC2 has terminated them. At its
deletion it terminates the nodes. It responds to a rollback at once, and replaces nodes afterwards. An invocation lasts
at most 15 minutes, so the function invokes itself again while it has to wait: at most five times, because
CloudFormation waits for an hour. Lambda would stop a function that is invoked about 16 times in one chain of events
(Lambda Developer Guide, recursive loop detection).
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from trainium_runtime.controller.controller import ClusterController
from trainium_runtime.controller.deployment import DeploymentDecision, FleetDeployment, Progress
from trainium_runtime.controller.reading import environment_store
from trainium_runtime.controller.settings import ControllerSettings
from trainium_runtime.fleet_verdict import FleetVerdict
from trainium_runtime.log import log
from trainium_runtime.node_store import describe_instances, find_group

from .custom_resource import respond
from .rollback import is_rolling_back

_LONGEST_PAUSE_S = 15.0
_MARGIN_S = 60.0
_SHARE_WITHOUT_CAPACITY = 0.2
"""The part of its time limit after which a creation fails if AWS does not have the instances: another zone may."""
_ERRORS_IN_A_ROW = 8  # about a minute, until new permissions are effective
_STATE = "TrnState"
"""Key in the event with which the function invokes itself: the state of the deployment."""


@dataclass
class _State:
    """The state of a deployment, which the invocations for it share.

    Attributes:
        started: When the function was first invoked for it, in seconds since 1970.
        after_response: Whether CloudFormation got the response already, in a rollback.
    """

    started: float
    progress: Progress
    after_response: bool = False

    @classmethod
    def from_event(cls, event: Mapping[str, Any]) -> "_State":
        stored = event.get(_STATE)
        if stored is None:
            return cls(started=time.time(), progress=Progress())
        values: dict[str, Any] = {**stored, "progress": Progress.from_json(stored["progress"])}
        return cls(**values)

    def to_json(self) -> Mapping[str, Any]:
        return {**vars(self), "progress": self.progress.to_json()}


def deploy(event: dict[str, Any], context: Any) -> None:
    """Act on an event of CloudFormation, or on one with which the function has invoked itself."""
    properties = event["ResourceProperties"]
    state = _State.from_event(event)
    if event["RequestType"] == "Delete":
        if not _continues_deletion(event, context, state):
            respond(event, physical_id=event["PhysicalResourceId"])
        return
    physical_id = f"{properties['Settings']['GROUP']}/readiness"
    if state.after_response:
        log(_wait(event, context, state).reason)
        return
    # A deployment that is already waiting is not the rollback.
    if event["RequestType"] == "Update" and _STATE not in event and is_rolling_back(event["StackId"]):
        verdict = _roll_back(event, context, state)
        log(verdict.reason)
        respond(event, physical_id=physical_id, data=_data(verdict))
        return
    try:
        verdict = _wait(event, context, state)
    except Exception as error:  # CloudFormation needs a response
        respond(event, failure=f"the state of the fleet could not be read: {error}", physical_id=physical_id)
        return
    if verdict.state == "ready":
        respond(event, physical_id=physical_id, data=_data(verdict))
    elif verdict.state == "failed":
        respond(event, failure=verdict.reason, physical_id=physical_id)


def _data(verdict: FleetVerdict) -> Mapping[str, str]:
    return {"State": verdict.state, "Nodes": str(verdict.nodes), "Summary": verdict.reason}


def _continues_deletion(event: dict[str, Any], context: Any, state: _State) -> bool:
    """Terminate the nodes. Errors do not stop the deletion: a later resource then fails with a clearer message.

    Returns:
        Whether another invocation continues to wait.
    """
    properties = event["ResourceProperties"]
    try:
        deadline, end_of_invocation = _deadline(event, state), _invocation_end(context)
        if _terminate_nodes(properties["Settings"]["GROUP"], until=min(deadline, end_of_invocation)):
            return False
        if end_of_invocation < deadline:
            _call_again(event, context, state)
            return True
        log(f"the nodes were not terminated within {properties['TimeoutMinutes']} minutes; the deletion continues")
    except Exception as error:
        log(f"the nodes could not be terminated, or their termination could not be read: {error}")
    return False


def _terminate_nodes(group_name: str, *, until: float) -> bool:
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

    autoscaling: Any = boto3.client("autoscaling")
    ec2: Any = boto3.client("ec2")
    while remaining := _terminate_and_count(autoscaling, ec2, group_name):
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
    if group.desired:
        autoscaling.set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=0, HonorCooldown=False)
    return sum(i["State"]["Name"] != "terminated" for i in describe_instances(ec2, name).values())


def _roll_back(event: dict[str, Any], context: Any, state: _State) -> FleetVerdict:
    """Set the size of the group without waiting. The reason of the verdict has a summary of the nodes.

    Another invocation replaces nodes of another version after the response: their termination can take long, and
    CloudFormation may roll back this resource before the group that it depends on.
    """
    try:
        decision = _Looks(event, state, in_rollback=True).look()
        if not decision.replacement.is_over:
            _call_again(event, context, _State(state.started, state.progress, after_response=True))
        verdict = decision.verdict
    except Exception as error:  # an error must not stop a rollback
        verdict = FleetVerdict(state="waiting", reason=f"the state of the fleet could not be read: {error}")
    return FleetVerdict(state=verdict.state, reason=f"after a rollback: {verdict.reason}", nodes=verdict.nodes)


def _wait(event: dict[str, Any], context: Any, state: _State) -> FleetVerdict:
    """Look until the fleet is ready or has failed, up to the time limits of this invocation and of the resource.

    Returns:
        The verdict. `waiting` if the function has invoked itself to continue; `failed` after the resource's time limit.
    """
    deadline, end_of_invocation = _deadline(event, state), _invocation_end(context)
    looks = _Looks(event, state, in_rollback=state.after_response)
    verdict = looks.until(min(deadline, end_of_invocation))
    if verdict.state != "waiting":
        return verdict
    if end_of_invocation < deadline:
        _call_again(event, context, state)
        return verdict
    minutes = event["ResourceProperties"]["TimeoutMinutes"]
    return FleetVerdict(state="failed", reason=f"after {minutes} minutes: {verdict.reason}")


def _deadline(event: dict[str, Any], state: _State) -> float:
    """The deadline of this resource over all invocations, in seconds since 1970."""
    return state.started + 60 * float(event["ResourceProperties"]["TimeoutMinutes"])


def _invocation_end(context: Any) -> float:
    return time.time() + context.get_remaining_time_in_millis() / 1000 - _MARGIN_S


class StepsFailedError(Exception):
    """Steps of a look failed. The message has their errors."""


class _Looks:
    """The looks of one invocation. They update the progress in the state."""

    def __init__(self, event: Mapping[str, Any], state: _State, *, in_rollback: bool) -> None:
        import boto3

        properties = event["ResourceProperties"]
        settings = ControllerSettings.from_variables(properties["Settings"])
        self._state = state
        limit = 60 * float(properties["TimeoutMinutes"])
        self._capacity_deadline = (
            state.started + (_SHARE_WITHOUT_CAPACITY if event["RequestType"] == "Create" else 1) * limit
        )
        self._controller = ClusterController(settings, boto3.client, environment_store(settings.records_bucket))
        self._deployment = FleetDeployment(
            nodes=int(properties["Nodes"]),
            template=f"{properties['LaunchTemplateId']}:{properties['LaunchTemplateVersion']}",
            subnet=properties["SubnetId"],
            replacements=settings.replacements,
            # At a creation, all launches belong to the deployment.
            since=datetime.fromtimestamp(state.started, UTC) if event["RequestType"] == "Update" else None,
            in_rollback=in_rollback,
            after_response=state.after_response,
        )

    def look(self) -> DeploymentDecision:
        """Look once.

        Raises:
            ClientError: AWS refused a request.
            BotoCoreError: AWS was not reached.
            StepsFailedError: The pilot or the size of the group are not as decided.
            NoGroupError: The group does not exist.
        """
        now = datetime.fromtimestamp(time.time(), UTC)
        decision, errors = self._controller.deploy(self._deployment, self._state.progress, now=now)
        self._state.progress = decision.progress
        if errors:
            raise StepsFailedError("; ".join(map(str, errors)))
        return decision

    def until(self, end: float) -> FleetVerdict:
        """Look until the fleet is ready or has failed.

        Args:
            end: When to stop, in seconds since 1970.

        Raises:
            NoGroupError: The group does not exist.
            ClientError: AWS refused a request in too many looks in a row.
            BotoCoreError: AWS was not reached in too many looks in a row.
            StepsFailedError: Steps failed in too many looks in a row.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        pause, errors = 0.5, 0
        while True:
            try:
                verdict = self.look().verdict
                errors = 0
            except (BotoCoreError, ClientError, StepsFailedError) as error:
                errors += 1
                if errors > _ERRORS_IN_A_ROW:
                    raise
                verdict = FleetVerdict(state="waiting", reason=f"the state of the fleet could not be read: {error}")
            if verdict.lacks_capacity and time.time() >= self._capacity_deadline:
                minutes = (time.time() - self._state.started) / 60
                verdict = FleetVerdict(state="failed", reason=f"no capacity for {minutes:.0f} min: {verdict.reason}")
            log(f"{verdict.state}: {verdict.reason}")
            if verdict.state != "waiting" or time.time() + pause > end:
                return verdict
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)


def _call_again(event: dict[str, Any], context: Any, state: _State) -> None:
    import boto3

    client: Any = boto3.client("lambda")
    payload = json.dumps({**event, _STATE: state.to_json()}).encode()
    client.invoke(FunctionName=context.invoked_function_arn, InvocationType="Event", Payload=payload)

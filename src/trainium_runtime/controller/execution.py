"""Executes actions."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from trainium_runtime.controller.actions import (
    Action,
    DeleteStack,
    MarkUnhealthy,
    PrintLine,
    Publish,
    Remember,
    Resize,
    Step,
    TagInstances,
    WriteMembership,
)
from trainium_runtime.controller.reading import ClientFactory
from trainium_runtime.controller.settings import ControllerSettings, PilotOptions
from trainium_runtime.log import log
from trainium_runtime.node_store import NodeStore

_TAGGED_AT_ONCE = 200  # instances; EC2 accepts up to 1,000 resources (API reference, CreateTags)


class MembershipChangedError(Exception):
    """Another invocation has written the membership since the snapshot."""


class Executor:
    """Executes the actions of a cluster's controller."""

    def __init__(self, settings: ControllerSettings, client: ClientFactory, store: NodeStore) -> None:
        self._settings, self._client, self._store = settings, client, store

    def execute(self, steps: Iterable[Step]) -> Sequence[Exception]:
        """Execute steps. A failed step does not prevent the others.

        Returns:
            The error of each failed step.
        """
        errors: list[Exception] = []
        for step in steps:
            try:
                self._execute(step)
            except Exception as error:
                errors.append(error)
        return errors

    def _execute(self, step: Step) -> None:
        try:
            for action in step.actions:
                if isinstance(action, Step):
                    self._execute(action)
                else:
                    self._act(action)
        except Exception as error:
            self._execute(Step(step.otherwise(_reason(error))))
            raise

    def _act(self, action: Action) -> None:
        match action:
            case PrintLine():
                log(**action.fields)
            case Resize():
                self._client("autoscaling").set_desired_capacity(
                    AutoScalingGroupName=self._settings.group, DesiredCapacity=action.nodes, HonorCooldown=False
                )
                log(resized_to=action.nodes)
            case MarkUnhealthy():
                self._mark_unhealthy(action)
            case TagInstances():
                tags = [{"Key": key, "Value": value} for key, value in action.tags.items()]
                for start in range(0, len(action.instances), _TAGGED_AT_ONCE):
                    self._tag(action.instances[start : start + _TAGGED_AT_ONCE], tags)
            case WriteMembership():
                if not self._store.write_membership(action.membership, replacing=action.replacing):
                    raise MembershipChangedError
                log(membership=json.loads(action.membership.to_json()))
            case Publish():
                topic = self._pilot.notices
                self._client("sns").publish(TopicArn=topic, Subject=action.subject, Message=action.message)
                log(published=action.subject)
            case Remember():
                self._remember(action)
            case DeleteStack():
                self._delete_stack()

    @property
    def _pilot(self) -> PilotOptions:
        pilot = self._settings.pilot
        assert pilot is not None, "only a pilot has such actions"
        return pilot

    def _mark_unhealthy(self, action: MarkUnhealthy) -> None:
        from botocore.exceptions import ClientError

        try:
            self._client("autoscaling").set_instance_health(
                InstanceId=action.instance, HealthStatus="Unhealthy", ShouldRespectGracePeriod=False
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ValidationError":  # it has left the group since
                raise
            log(ignored=action.instance, why=str(error))
            return
        log(replaced=action.instance, why=action.why)

    def _tag(self, instances: Sequence[str], tags: list[dict[str, str]]) -> None:
        from botocore.exceptions import ClientError

        try:
            self._client("ec2").create_tags(Resources=list(instances), Tags=tags)
        except ClientError as error:
            if error.response["Error"]["Code"] != "InvalidInstanceID.NotFound":
                raise
            # An instance that EC2 no longer lists, or does not list yet, must not prevent the tagging of the others.
            for instance in instances if len(instances) > 1 else ():
                self._tag([instance], tags)

    def _remember(self, action: Remember) -> None:
        sns, topic = self._client("sns"), self._pilot.topic
        if action.value is None:
            sns.untag_resource(ResourceArn=topic, TagKeys=[action.tag])
        else:
            sns.tag_resource(ResourceArn=topic, Tags=[{"Key": action.tag, "Value": action.value}])

    def _delete_stack(self) -> None:
        """Invoke the function that may delete the stack. Raises RuntimeError if it fails."""
        name = self._pilot.stack_deletion
        answer: Any = self._client("lambda").invoke(FunctionName=name, Payload=b"{}")
        if answer.get("FunctionError"):
            raise RuntimeError(json.loads(answer["Payload"].read()).get("errorMessage", "no reason reported"))
        log(deleting=self._settings.stack_id)


def _reason(error: Exception) -> str:
    """The message of an error, without the operation that AWS refused."""
    response: Any = getattr(error, "response", None)
    return response["Error"].get("Message", str(error)) if response else str(error)

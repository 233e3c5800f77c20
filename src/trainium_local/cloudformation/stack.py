"""Stacks: their resources, their events, and the store that keeps them."""

import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from trainium_local import clock
from trainium_local.cloudformation.errors import ValidationError, no_such_stack
from trainium_local.cloudformation.parameters import Parameter
from trainium_local.cloudformation.template import Template
from trainium_local.resources.registry import Properties, Provisioned, ResourceType

Json = dict[str, Any]

STACK = "AWS::CloudFormation::Stack"

_adding_event = threading.Lock()


@dataclass(kw_only=True)
class StackResource:
    """An existing resource of a stack. Its properties are resolved and include the tags of the stack."""

    logical_id: str
    provisioner: ResourceType
    definition: Mapping[str, Any]
    properties: Properties
    provisioned: Provisioned = field(default_factory=lambda: Provisioned(physical_id=""))
    status: str = ""
    reason: str | None = None
    updated: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def resource_type(self) -> str:
        return self.definition["Type"]

    @property
    def physical_id(self) -> str:
        return self.provisioned.physical_id


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """The target of a stack operation."""

    template: Template
    parameters: Mapping[str, Parameter]
    tags: Mapping[str, str]

    @property
    def parameter_texts(self) -> dict[str, str]:
        return {name: parameter.text for name, parameter in self.parameters.items()}


@dataclass(kw_only=True)
class Stack:
    """A stack.

    Attributes:
        parent: The stack that contains this nested stack.
        deployment: The current deployment or, until the first success, the attempted one.
        settings: Request parameters that DescribeStacks returns unchanged.
        outputs: In the shape of the API.
        imports: Names of the exports of other stacks that this stack uses.
        events: In the shape of the API.
        cancelled: Set to cancel the current creation.
        worker: The thread of the last operation.
    """

    name: str
    stack_id: str
    account: str
    region: str
    parent: "Stack | None" = None
    status: str = "REVIEW_IN_PROGRESS"
    status_reason: str | None = None
    deployment: Deployment | None = None
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    resources: dict[str, StackResource] = field(default_factory=dict[str, StackResource])
    outputs: list[Json] = field(default_factory=list[Json])
    imports: frozenset[str] = frozenset()
    events: list[Json] = field(default_factory=list[Json])
    created: datetime = field(default_factory=clock.now)
    updated: datetime | None = None
    deleted: datetime | None = None
    termination_protection: bool = False
    cancelled: threading.Event = field(default_factory=threading.Event)
    worker: threading.Thread | None = None

    @property
    def root(self) -> "Stack":
        """Return the outermost stack that contains this one, or the stack itself."""
        return self.parent.root if self.parent else self

    def place(self, logical_id: str) -> int:
        """Return a resource's position in dependency order, or -1 if the template does not contain it."""
        return self.deployment.template.place(logical_id) if self.deployment else -1

    @property
    def exports(self) -> dict[str, str]:
        """Return export name -> value."""
        return {output["ExportName"]: output["OutputValue"] for output in self.outputs if output["ExportName"]}

    def record(self, status: str, reason: str | None = None) -> None:
        """Set the stack's status and add an event."""
        self.status, self.status_reason = status, reason
        self._add_event(self.name, STACK, status, self.stack_id, reason)

    def record_resource(
        self,
        logical_id: str,
        resource_type: str,
        status: str,
        reason: str | None = None,
        *,
        physical_id: str | None = None,
    ) -> None:
        """Add an event of a resource, and set its status if the stack's resource has this physical ID.

        `physical_id` defaults to that of the stack's resource.
        """
        resource = self.resources.get(logical_id)
        if physical_id is None:
            physical_id = resource.physical_id if resource else ""
        time = self._add_event(logical_id, resource_type, status, physical_id, reason)
        if resource and resource.physical_id == physical_id:
            resource.status, resource.reason, resource.updated = status, reason, time

    def _add_event(
        self, logical_id: str, resource_type: str, status: str, physical_id: str, reason: str | None
    ) -> datetime:
        with _adding_event:
            time = clock.now()
            if self.events:  # clients sort by the millisecond
                time = max(time, self.events[-1]["Timestamp"] + timedelta(milliseconds=1))
            event = {
                "StackId": self.stack_id,
                "StackName": self.name,
                "EventId": str(uuid.uuid4()),
                "LogicalResourceId": logical_id,
                "PhysicalResourceId": physical_id,
                "ResourceType": resource_type,
                "ResourceStatus": status,
                "ResourceStatusReason": reason,
                "Timestamp": time,
            }
            self.events.append(event)
        return time


class Region:
    """The stacks of a region."""

    def __init__(self, account: str, name: str) -> None:
        self.account, self.name = account, name
        self.lock = threading.Lock()
        self._stacks: dict[str, Stack] = {}

    @property
    def stacks(self) -> list[Stack]:
        """Return all stacks, including deleted ones."""
        return list(self._stacks.values())

    def new_stack(self, name: str, parent: Stack | None = None) -> Stack:
        stack_id = f"arn:aws:cloudformation:{self.name}:{self.account}:stack/{name}/{uuid.uuid4()}"
        stack = Stack(name=name, stack_id=stack_id, account=self.account, region=self.name, parent=parent)
        self._stacks[stack_id] = stack
        return stack

    def find(self, name_or_id: str) -> Stack | None:
        """Find a stack by ID, or by name unless it is deleted."""
        if name_or_id in self._stacks:
            return self._stacks[name_or_id]
        alive = (stack for stack in self.stacks if stack.deleted is None)
        return next((stack for stack in alive if stack.name == name_or_id), None)

    def get(self, name_or_id: str) -> Stack:
        stack = self.find(name_or_id)
        if stack is None:
            raise no_such_stack(name_or_id)
        return stack

    def exports(self) -> dict[str, tuple[Stack, str]]:
        """Return export name -> the exporting stack and the value."""
        alive = [stack for stack in self.stacks if stack.deleted is None]
        return {name: (stack, value) for stack in alive for name, value in stack.exports.items()}

    def importers(self, export_name: str) -> list[Stack]:
        """Return the stacks that import an export."""
        return [stack for stack in self.stacks if stack.deleted is None and export_name in stack.imports]


def refuse_if_imported(region: Region, export_name: str, done: str) -> None:
    """Raise ValidationError if another stack imports an export that is about to be deleted or updated."""
    users = ", ".join(stack.name for stack in region.importers(export_name))
    if users:
        raise ValidationError(f"Export {export_name} cannot be {done} as it is in use by {users}")


_regions: dict[tuple[str, str], Region] = {}


def stack_region(account: str, name: str) -> Region:
    """Return the stacks of an account in a region."""
    return _regions.setdefault((account, name), Region(account, name))

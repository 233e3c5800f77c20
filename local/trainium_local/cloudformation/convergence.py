"""Bringing a stack to a deployment, resource by resource, with events and a way back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from trainium_local.cloudformation.deletion import KEEPS, delete, delete_all, make_request
from trainium_local.cloudformation.deployment import ExistingResources, resolver, with_stack_tags
from trainium_local.cloudformation.dynamic_references import with_secrets
from trainium_local.cloudformation.errors import ValidationError
from trainium_local.cloudformation.references import needed_by
from trainium_local.cloudformation.stack import (
    Deployment,
    Output,
    Region,
    Stack,
    StackResource,
    refuse_if_imported,
)
from trainium_local.resources import api, registry, schemas
from trainium_local.resources.registry import NeedsReplacementError, Properties, ProvisioningError, Request


class FailedError(Exception):
    """A resource failed; its event has the details, the message is the reason for the stack."""


class CancelledError(Exception):
    """The stack is being deleted meanwhile."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Step:
    """A resource became another: created if there was none before, replaced if the physical id is a new one."""

    before: StackResource | None
    after: StackResource

    @property
    def replaces(self) -> bool:
        return self.before is not None and self.before.physical_id != self.after.physical_id


class Convergence:
    """One attempt to bring `stack` to `deployment`. What it did stands until `roll_back`."""

    def __init__(self, region: Region, stack: Stack, deployment: Deployment) -> None:
        self._region, self._stack, self._deployment = region, stack, deployment
        self._resolver = resolver(region, stack, deployment, ExistingResources(stack.resources, stack.region))
        self._steps: list[_Step] = []

    def run(self) -> None:
        """Raises FailedError or CancelledError."""
        for logical_id in self._deployment.template.order:
            if self._stack.cancelled.is_set():
                raise CancelledError
            if self._wanted(logical_id):
                self._bring(logical_id, self._deployment.template.resources[logical_id])

    def outputs(self) -> list[Output]:
        """The outputs of the stack as it is now. Raises ValidationError if an export's name is taken."""
        outputs = [
            Output(
                key=key,
                value=str(self._resolver.resolve(output["Value"])),
                description=output.get("Description"),
                export_name=self._resolver.resolve((output.get("Export") or {}).get("Name")),
            )
            for key, output in self._deployment.template.outputs.items()
            if self._resolver.condition(output.get("Condition"))
        ]
        taken = self._region.exports()
        for output in outputs:
            if output.export_name in taken and taken[output.export_name][0] is not self._stack:
                raise ValidationError(
                    f"Export with name {output.export_name} is already exported by stack "
                    f"{taken[output.export_name][0].name}. Rename the export."
                )
        kept = {(output.export_name, output.value) for output in outputs}
        for output in self._stack.outputs:
            if output.export_name and (output.export_name, output.value) not in kept:
                refuse_if_imported(self._region, output.export_name, "updated")
        self._stack.imports = frozenset(self._resolver.imports)
        return outputs

    def clean_up(self) -> None:
        """Delete what the deployment no longer has. A failure shows in the events and fails nothing, as on AWS."""
        replaced = [step.before for step in self._steps if step.before is not None and step.replaces]
        for resource in replaced[::-1]:
            delete(self._stack, resource, keep=resource.definition.get("UpdateReplacePolicy") in KEEPS)
        delete_all(self._stack, [name for name in self._stack.resources if not self._wanted(name)])

    def roll_back(self) -> bool:
        """Take every step back, the last first, but for what those need that could not be; False if there are any."""
        held, went = set[str](), True
        for step in reversed(self._steps):
            if step.after.logical_id in held or not self._take_back(step):
                held |= needed_by(step.after.definition)
                went = False
        return went

    def _wanted(self, logical_id: str) -> bool:
        definition = self._deployment.template.resources.get(logical_id)
        return definition is not None and self._resolver.condition(definition.get("Condition"))

    def _bring(self, logical_id: str, definition: Mapping[str, Any]) -> None:
        before, resource_type = self._stack.resources.get(logical_id), definition["Type"]
        if before is not None and before.status == "CREATE_FAILED":
            delete(self._stack, before, keep=False)
            before = None
        verb = "CREATE" if before is None else "UPDATE"
        try:
            own = self._resolver.resolve(definition.get("Properties") or {})
            properties = with_stack_tags(resource_type, self._stack.region, own, self._deployment.tags)
            if before is not None and properties == before.properties:
                before.definition = definition
                return
            self._event(logical_id, resource_type, f"{verb}_IN_PROGRESS", before)
            _check(logical_id, resource_type, own, self._stack.region)
            if before is None:
                self._create(logical_id, definition, properties)
            else:
                self._update(before, definition, properties)
        except Exception as error:
            reason = api.words(error)
            self._event(logical_id, resource_type, f"{verb}_FAILED", self._stack.resources.get(logical_id), reason)
            raise FailedError(
                f"The following resource(s) failed to {verb.lower()}: [{logical_id}]. {reason}"
            ) from error
        after = self._stack.resources[logical_id]
        self._event(logical_id, resource_type, f"{verb}_COMPLETE", after, _note(after))

    def _create(
        self,
        logical_id: str,
        definition: Mapping[str, Any],
        properties: Properties,
        before: StackResource | None = None,
    ) -> None:
        provisioner = registry.find(definition["Type"], self._stack.region)
        assert provisioner is not None, "the template was checked"
        after = StackResource(
            logical_id=logical_id, provisioner=provisioner, definition=definition, properties=properties
        )
        try:
            after.provisioned = provisioner.create(self._request(after))
        except ProvisioningError as error:
            if error.leftover is not None:
                after.provisioned = error.leftover
                self._took(before, after)
            raise
        self._took(before, after)

    def _update(self, before: StackResource, definition: Mapping[str, Any], properties: Properties) -> None:
        after = dataclasses.replace(before, definition=definition, properties=properties)
        try:
            if _is_replaced(before.resource_type, self._stack.region, before.properties, properties):
                raise NeedsReplacementError
            self._turn(before, after)
        except NeedsReplacementError:
            self._create(before.logical_id, definition, properties, before)
        except Exception:
            self._took(before, after)  # it may have changed half of it: to be taken back too
            raise
        else:
            self._took(before, after)

    def _turn(self, before: StackResource, after: StackResource) -> None:
        previous = with_secrets(before.properties, self._stack.region)
        after.provisioned = after.provisioner.update(self._request(after), before.provisioned, previous)

    def _request(self, resource: StackResource) -> Request:
        request = make_request(self._stack, resource)
        return dataclasses.replace(request, properties=with_secrets(request.properties, self._stack.region))

    def _took(self, before: StackResource | None, after: StackResource) -> None:
        self._stack.resources[after.logical_id] = after
        self._steps.append(_Step(before=before, after=after))

    def _take_back(self, step: _Step) -> bool:
        after, before = step.after, step.before
        if before is None:
            return delete(self._stack, after, keep=after.definition.get("DeletionPolicy") == "Retain")
        if step.replaces:
            deleted = delete(self._stack, after, keep=False)
            self._stack.resources[before.logical_id] = before
            return deleted
        self._event(before.logical_id, before.resource_type, "UPDATE_IN_PROGRESS", after)
        try:
            restored = dataclasses.replace(before)
            self._turn(after, restored)
        except Exception as error:
            self._event(before.logical_id, before.resource_type, "UPDATE_FAILED", after, api.words(error))
            return False
        self._stack.resources[before.logical_id] = restored
        self._event(before.logical_id, before.resource_type, "UPDATE_COMPLETE", restored)
        return True

    def _event(
        self, logical_id: str, resource_type: str, status: str, at: StackResource | None, reason: str | None = None
    ) -> None:
        self._stack.record_resource(logical_id, resource_type, status, at.physical_id if at else "", reason)


def _check(logical_id: str, resource_type: str, properties: Properties, region: str) -> None:
    """Raise ValidationError if the type's schema does not allow the properties."""
    schema = schemas.find(resource_type, region)
    problems = schema.problems(properties) if schema else []
    if problems:
        found = "; ".join(map(str, problems))
        raise ValidationError(f"Properties validation failed for resource {logical_id} with message: {found}")


def _note(resource: StackResource) -> str | None:
    """What an event has to say of a resource that is not all that the template asks for."""
    waits = "ResourceSignal" in (resource.definition.get("CreationPolicy") or {})
    unheeded = "The embedded AWS does not wait for the signals of the CreationPolicy." if waits else None
    return " ".join(filter(None, (resource.provisioned.note, unheeded))) or None


def _is_replaced(resource_type: str, region: str, old: Properties, new: Properties) -> bool:
    """Whether the schema says that the change takes a new resource."""
    schema = schemas.find(resource_type, region)
    return schema is not None and bool(schema.create_only(old, new))

"""Brings a stack to a deployment, resource by resource, with events and rollback."""

import dataclasses
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainium_local import rules
from trainium_local.cloudformation.deletion import KEEPS, delete, delete_all, make_request
from trainium_local.cloudformation.deployment import Existing, resolver, with_stack_tags
from trainium_local.cloudformation.errors import ValidationError
from trainium_local.cloudformation.stack import Deployment, Json, Region, Stack, StackResource, refuse_if_imported
from trainium_local.cloudformation.values import needed_by
from trainium_local.resources import api, registry, schemas
from trainium_local.resources.registry import (
    CancelledError,
    NeedsReplacementError,
    Properties,
    ProvisioningError,
    UnchangeableError,
)
from trainium_local.rules import lint

_SAME_NAME = (
    "CloudFormation cannot update a stack when a custom-named resource requires replacing. Rename {} and update the "
    "stack again."
)


class FailedError(Exception):
    """A resource failed. The message is the status reason of the stack."""


@dataclass(frozen=True, kw_only=True)
class _Step:
    """One change of a resource: a creation, an update, or a replacement if the physical ID is new."""

    before: StackResource | None
    after: StackResource

    @property
    def replaces(self) -> bool:
        return self.before is not None and self.before.physical_id != self.after.physical_id


class Convergence:
    """One attempt to bring a stack to a deployment. Call `run`, then either `clean_up` or `roll_back`."""

    def __init__(self, region: Region, stack: Stack, deployment: Deployment) -> None:
        self._region, self.stack, self.deployment = region, stack, deployment
        self._before = stack.outputs, stack.imports
        self._existing = Existing(region, stack)
        self._resolver = resolver(region, stack, deployment, self._existing)
        self._steps = list[_Step]()

    def run(self) -> None:
        """Apply the deployment.

        Raises:
            FailedError: A resource failed.
            CancelledError: The stack is being deleted.
            ValidationError: An output is invalid.
        """
        for name in filter(self._is_wanted, self.deployment.template.order):
            if self.stack.cancelled.is_set():
                raise CancelledError
            self._apply_resource(name)
        self.stack.outputs = self._outputs()
        self.stack.imports = frozenset(self._existing.imports)

    def _outputs(self) -> list[Json]:
        """Return the deployment's outputs.

        Raises:
            ValidationError: Another stack exports one of the names, or imports an export that changes or is removed.
        """
        outputs = [
            {
                "OutputKey": key,
                "OutputValue": str(self._resolver.resolve(output["Value"])),
                "Description": output.get("Description"),
                "ExportName": self._resolver.resolve((output.get("Export") or {}).get("Name")),
            }
            for key, output in self.deployment.template.outputs.items()
            if self._resolver.condition(output.get("Condition"))
        ]
        exports = {output["ExportName"]: output["OutputValue"] for output in outputs}
        existing = self._region.exports()
        for name in exports:
            if name in existing and existing[name][0] is not self.stack:
                raise ValidationError(
                    f"Export with name {name} is already exported by stack {existing[name][0].name}. Rename the export."
                )
        for name, value in self.stack.exports.items():
            if exports.get(name) != value:
                refuse_if_imported(self._region, name, "updated")
        return outputs

    def clean_up(self) -> None:
        """Delete replaced and removed resources. As on AWS, failures appear in events only."""
        for step in self._steps:
            step.after.provisioner.complete(step.after.provisioned)
        for step in reversed(self._steps):
            if step.before is not None and step.replaces:
                keep = step.before.definition.get("UpdateReplacePolicy") in KEEPS
                delete(self.stack, step.before, keep=keep)
        delete_all(self.stack, [name for name in self.stack.resources if not self._is_wanted(name)])

    def roll_back(self) -> list[str]:
        """Roll back `run` in reverse order, and return the resources that could not be rolled back.

        A resource on which one of these depends remains unchanged.
        """
        self.stack.outputs, self.stack.imports = self._before
        held, failed = set[str](), list[str]()
        for step in reversed(self._steps):
            name = step.after.logical_id
            if name not in held and self._roll_back_step(step):
                continue
            if name not in held:
                failed.append(name)
            held |= needed_by(step.after.definition)
        return failed

    def _is_wanted(self, logical_id: str) -> bool:
        definition = self.deployment.template.resources.get(logical_id)
        return definition is not None and self._resolver.condition(definition.get("Condition"))

    def _apply_resource(self, logical_id: str) -> None:
        stack, definition = self.stack, self.deployment.template.resources[logical_id]
        resource_type, before = definition["Type"], stack.resources.get(logical_id)
        verb = "UPDATE" if before else "CREATE"
        try:
            own = self._resolver.resolve(definition.get("Properties") or {})
            properties = with_stack_tags(resource_type, stack.region, own, self.deployment.tags)
            if before is not None and properties == before.properties and not before.status.endswith("_FAILED"):
                before.definition = definition
                return
            stack.record_resource(logical_id, resource_type, f"{verb}_IN_PROGRESS")
            _check(logical_id, resource_type, own, stack.region)
            target = rules.Target(account=stack.account, region=stack.region, new=before is None)
            rules.refuse(resource_type, own, target)
            _refuse(logical_id, lint.problems(resource_type, own, stack.region))
            if before is None:
                self._create(logical_id, definition, properties)
            else:
                self._update(before, definition, properties)
        except CancelledError:
            done = "update" if before else "creation"
            stack.record_resource(logical_id, resource_type, f"{verb}_FAILED", f"Resource {done} cancelled")
            raise
        except Exception as error:
            reason = api.failure_reason(error)
            stack.record_resource(logical_id, resource_type, f"{verb}_FAILED", reason)
            words = f"The following resource(s) failed to {verb.lower()}: [{logical_id}]. {reason}"
            raise FailedError(words) from error
        note = stack.resources[logical_id].provisioned.note
        stack.record_resource(logical_id, resource_type, f"{verb}_COMPLETE", note)

    def _create(
        self,
        logical_id: str,
        definition: Mapping[str, Any],
        properties: Properties,
        before: StackResource | None = None,
    ) -> None:
        provisioner = registry.find(definition["Type"])
        assert provisioner is not None, "the template was checked"
        after = StackResource(
            logical_id=logical_id, provisioner=provisioner, definition=definition, properties=properties
        )
        try:
            after.provisioned = provisioner.create(make_request(self.stack, after))
        except ProvisioningError as error:
            if error.leftover is not None:
                after.provisioned = error.leftover
                self._record_step(before, after)
            raise
        self._record_step(before, after)

    def _update(self, before: StackResource, definition: Mapping[str, Any], properties: Properties) -> None:
        after = dataclasses.replace(before, definition=definition, properties=properties)
        schema = schemas.find(before.resource_type, self.stack.region)
        try:
            if schema is not None and schema.create_only(before.properties, properties):
                raise NeedsReplacementError
            self._update_resource(before, after, self.stack.cancelled)
        except NeedsReplacementError:
            names = schema.primary_identifier if schema else []
            if names and all(name in properties and properties[name] == before.properties.get(name) for name in names):
                raise ProvisioningError(_SAME_NAME.format(before.physical_id)) from None
            self._create(before.logical_id, definition, properties, before)
        except UnchangeableError:
            raise
        except Exception:
            self._record_step(before, after)  # a failed update may be partial, so it is rolled back too
            raise
        else:
            self._record_step(before, after)

    def _update_resource(self, before: StackResource, after: StackResource, cancelled: threading.Event) -> None:
        request = dataclasses.replace(make_request(self.stack, after), cancelled=cancelled)
        after.provisioned = after.provisioner.update(request, before.provisioned, before.properties)

    def _record_step(self, before: StackResource | None, after: StackResource) -> None:
        self.stack.resources[after.logical_id] = after
        self._steps.append(_Step(before=before, after=after))

    def _roll_back_step(self, step: _Step) -> bool:
        stack, after, before = self.stack, step.after, step.before
        if before is None:
            return delete(stack, after, keep=after.definition.get("DeletionPolicy") == "Retain")
        if step.replaces:
            deleted = delete(stack, after, keep=False)
            stack.resources[before.logical_id] = before
            return deleted
        name, resource_type = before.logical_id, before.resource_type
        stack.record_resource(name, resource_type, "UPDATE_IN_PROGRESS")
        restored = dataclasses.replace(before)
        try:
            self._update_resource(after, restored, threading.Event())
        except Exception as error:
            stack.record_resource(name, resource_type, "UPDATE_FAILED", api.failure_reason(error))
            return False
        stack.resources[name] = restored
        stack.record_resource(name, resource_type, "UPDATE_COMPLETE")
        return True


def _check(logical_id: str, resource_type: str, properties: Properties, region: str) -> None:
    """Raise ValidationError if the schema of the type does not allow the properties."""
    schema = schemas.find(resource_type, region)
    _refuse(logical_id, schema.problems(properties) if schema else [])


def _refuse(logical_id: str, problems: Sequence[schemas.SchemaProblem]) -> None:
    if problems:
        reasons = "; ".join(map(str, problems))
        raise ValidationError(f"Properties validation failed for resource {logical_id} with message: {reasons}")

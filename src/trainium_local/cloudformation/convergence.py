"""Bringing a stack to a deployment, resource by resource, with events and a way back."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from trainium_local import rules
from trainium_local.cloudformation import signals, stack_policy
from trainium_local.cloudformation.deletion import KEEPS, delete, delete_all, make_request
from trainium_local.cloudformation.dependency_order import work_in_order
from trainium_local.cloudformation.deployment import Existing, resolver, with_stack_tags
from trainium_local.cloudformation.errors import ValidationError
from trainium_local.cloudformation.parameters import refuse_absent
from trainium_local.cloudformation.rollback import turn
from trainium_local.cloudformation.stack import (
    Cancellation,
    Deployment,
    Json,
    Region,
    Stack,
    StackResource,
    Step,
    refuse_if_imported,
)
from trainium_local.resources import api, registry, schemas
from trainium_local.resources.registry import (
    CancelledError,
    NeedsReplacementError,
    Properties,
    Provisioned,
    ProvisioningError,
    Readable,
    UnchangeableError,
)

_NO_REPLACEMENT = "Replacement type updates not supported on stack with disable-rollback."
_SAME_NAME = (
    "CloudFormation cannot update a stack when a custom-named resource requires replacing. Rename {} and update the "
    "stack again."
)
_VERBS = {"CREATE": "creation", "UPDATE": "update", "IMPORT": "import"}


class FailedError(Exception):
    """Resources failed; their events have the details, the message is the reason for the stack."""


class Convergence:
    """One attempt to bring `stack` to `deployment`. What it did is in the stack's steps until `clean_up`."""

    def __init__(self, region: Region, stack: Stack, deployment: Deployment, *, may_replace: bool = True) -> None:
        self._region, self._stack, self._deployment = region, stack, deployment
        stack.capabilities = deployment.capabilities
        self._existing = Existing(region, stack)
        self._resolver = resolver(region, stack, deployment, self._existing)
        self._may_replace = may_replace
        self._policy = stack.policy_during_update or stack.policy
        self._failed = list[tuple[str, str]]()
        self._reason = ""

    def run(self) -> None:
        """Raises FailedError, or CancelledError if the stack's operation was cancelled before anything failed.

        After a failure nothing is begun, and what still waits is cancelled.
        """
        refuse_absent(self._deployment.template, self._deployment.parameters, self._stack.region)
        self._stack.cancelled = Cancellation(whole=self._stack.cancelled)
        template = self._deployment.template
        wanted = {name: template.resources[name] for name in template.order if self._wanted(name)}
        needs = {name: template.needs(name) & wanted.keys() - {name} for name in wanted}
        for name in sorted(self._stack.resources.keys() - wanted.keys()):
            resource = self._stack.resources[name]
            try:
                stack_policy.refuse(self._policy, "Delete", resource)
            except ValidationError as error:
                self._fail(name, resource.resource_type, "UPDATE", str(error))
        work_in_order(needs, self._try, waits=lambda name: _waits(wanted[name]))
        # not as they happened to be done: a rollback goes the same way back each time
        self._stack.steps.sort(key=lambda step: template.place(step.after.logical_id))
        if self._failed and self._reason:
            lists = {verb: [name for name, of in self._failed if of == verb] for verb in _VERBS}
            failed = [
                f"The following resource(s) failed to {verb.lower()}: [{', '.join(names)}]."
                for verb, names in lists.items()
                if names
            ]
            raise FailedError(" ".join([*failed, self._reason]))
        if self._stack.cancelled.is_set():
            raise CancelledError

    def outputs(self) -> list[Json]:
        """The outputs of the stack as it is now. Raises ValidationError if an export's name is taken."""
        outputs = [
            {
                "OutputKey": key,
                "OutputValue": str(self._resolver.resolve(output["Value"])),
                "Description": output.get("Description"),
                "ExportName": self._resolver.resolve((output.get("Export") or {}).get("Name")),
            }
            for key, output in self._deployment.template.outputs.items()
            if self._resolver.condition(output.get("Condition"))
        ]
        exports, taken = {one["ExportName"]: one["OutputValue"] for one in outputs}, self._region.exports()
        for name in exports:
            if name in taken and taken[name][0] is not self._stack:
                raise ValidationError(
                    f"Export with name {name} is already exported by stack {taken[name][0].name}. Rename the export."
                )
        for name, value in self._stack.exports.items():
            if exports.get(name) != value:
                refuse_if_imported(self._region, name, "updated")
        self._stack.imports = frozenset(self._existing.imports)
        return outputs

    def clean_up(self) -> None:
        """Delete what the deployment no longer has. A failure shows in the events and fails nothing, as on AWS."""
        replaced = [step.before for step in self._stack.steps if step.before is not None and step.replaces]
        self._stack.steps = []
        for resource in replaced[::-1]:
            delete(self._stack, resource, keep=resource.definition.get("UpdateReplacePolicy") in KEEPS)
        delete_all(self._stack, [name for name in self._stack.resources if not self._wanted(name)])

    def _wanted(self, logical_id: str) -> bool:
        definition = self._deployment.template.resources.get(logical_id)
        return definition is not None and self._resolver.condition(definition.get("Condition"))

    def _try(self, logical_id: str) -> bool:
        stack, definition = self._stack, self._deployment.template.resources[logical_id]
        if stack.cancelled.is_set():
            return False
        resource_type, before = definition["Type"], stack.resources.get(logical_id)
        if before is not None and before.status == "CREATE_FAILED":
            stack.steps = [step for step in stack.steps if step.after is not before]
            delete(stack, before, keep=False)
            before = None
        verb = "UPDATE" if before else "IMPORT" if logical_id in self._deployment.imports else "CREATE"
        try:
            own = self._resolver.resolve(definition.get("Properties") or {})
            properties = with_stack_tags(resource_type, stack.region, own, self._deployment.tags)
            if before is not None and properties == before.properties and not before.status.endswith("_FAILED"):
                before.definition = definition
                return True
            stack.record_resource(logical_id, resource_type, f"{verb}_IN_PROGRESS")
            _check(logical_id, resource_type, own, stack.region)
            target = rules.Target(account=stack.account, region=stack.region, new=verb == "CREATE")
            rules.refuse(resource_type, own, target)
            if before is None:
                self._create(logical_id, definition, properties)
                signals.wait(stack, stack.resources[logical_id])
            else:
                self._update(before, definition, properties)
        except Exception as error:
            self._fail(logical_id, resource_type, verb, None if isinstance(error, CancelledError) else api.words(error))
            return False
        note = stack.resources[logical_id].provisioned.note
        stack.record_resource(logical_id, resource_type, f"{verb}_COMPLETE", note)
        return True

    def _fail(self, logical_id: str, resource_type: str, verb: str, reason: str | None) -> None:
        """A resource failed, or was cancelled because another one did, and all that still waits is cancelled."""
        message = reason or f"Resource {_VERBS[verb]} cancelled"
        self._stack.record_resource(logical_id, resource_type, f"{verb}_FAILED", message)
        self._failed.append((logical_id, verb))
        self._reason = self._reason or reason or ""
        self._stack.cancelled.set()

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
            logical_id=logical_id,
            provisioner=provisioner,
            definition=definition,
            properties=properties,
            imported=logical_id in self._deployment.imports,
        )
        try:
            after.provisioned = self._provision(after)
        except ProvisioningError as error:
            if error.leftover is not None:
                after.provisioned = error.leftover
                self._took(before, after)
            raise
        self._took(before, after)

    def _provision(self, resource: StackResource) -> Provisioned:
        request, provisioner = make_request(self._stack, resource, secrets=True), resource.provisioner
        identifier = self._deployment.imports.get(request.logical_id)
        if identifier is None:
            return provisioner.create(request)
        if not isinstance(provisioner, Readable):
            raise ProvisioningError(f"The embedded AWS cannot import a resource of type {request.resource_type}")
        found = provisioner.read(request, identifier)
        if found is None:
            raise ProvisioningError(
                f"Resource of type '{request.resource_type}' with identifier '{identifier}' was not found."
            )
        return found.provisioned

    def _update(self, before: StackResource, definition: Mapping[str, Any], properties: Properties) -> None:
        after = dataclasses.replace(before, definition=definition, properties=properties)
        schema = schemas.find(before.resource_type, self._stack.region)
        replaced = schema is not None and bool(schema.create_only(before.properties, properties))
        stack_policy.refuse(self._policy, "Replace" if replaced else "Modify", before)
        try:
            if replaced:
                raise NeedsReplacementError
            turn(self._stack, before, after)
        except NeedsReplacementError:
            if not self._may_replace:
                raise ProvisioningError(_NO_REPLACEMENT) from None
            stack_policy.refuse(self._policy, "Replace", before)
            names = schema.primary_identifier if schema else []
            if names and all(name in properties and properties[name] == before.properties.get(name) for name in names):
                raise ProvisioningError(_SAME_NAME.format(before.physical_id)) from None
            self._create(before.logical_id, definition, properties, before)
        except UnchangeableError:
            raise
        except Exception:
            self._took(before, after)  # it may have changed half of it: to be taken back too
            raise
        else:
            self._took(before, after)

    def _took(self, before: StackResource | None, after: StackResource) -> None:
        self._stack.resources[after.logical_id] = after
        earlier = next((step for step in self._stack.steps if step.after is before), None)
        if earlier is not None:  # of an attempt that failed and was not rolled back: not what a rollback goes back to
            self._stack.steps.remove(earlier)
            before = earlier.before
        self._stack.steps.append(Step(before=before, after=after))


def _check(logical_id: str, resource_type: str, properties: Properties, region: str) -> None:
    """Raise ValidationError if the type's schema does not allow the properties."""
    schema = schemas.find(resource_type, region)
    problems = schema.problems(properties) if schema else []
    if problems:
        found = "; ".join(map(str, problems))
        raise ValidationError(f"Properties validation failed for resource {logical_id} with message: {found}")


def _waits(definition: Mapping[str, Any]) -> bool:
    provisioner = registry.find(definition["Type"])
    return signals.policy(definition) is not None or (provisioner is not None and registry.waits(provisioner))

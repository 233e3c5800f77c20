"""The CloudFormation API. moto parses requests and serialises responses. Lists are returned without pages."""

import re
from contextlib import AbstractContextManager
from typing import Any

from moto.core.responses import ActionResult, BaseResponse, EmptyResult

from trainium_local.access import CALLER
from trainium_local.cloudformation import stack_operations, views
from trainium_local.cloudformation.change_sets import ChangeSet, differs
from trainium_local.cloudformation.deployment import MAX_BYTES_IN_REQUEST, fetch_template, prepare, refuse_large_body
from trainium_local.cloudformation.errors import (
    AlreadyExistsError,
    ChangeSetNotFoundError,
    InvalidChangeSetStatusError,
    ValidationError,
    no_such_stack,
)
from trainium_local.cloudformation.stack import Deployment, Region, Stack, StackResource, stack_region
from trainium_local.permissions.enforcement import RequestDeniedError, stack_credentials
from trainium_local.resources import api
from trainium_local.tags import tag_values

_READ_PREFIXES = ("Describe", "Get", "List")
_NAME = re.compile(r"[a-zA-Z][-a-zA-Z0-9]{0,127}")
#: Unsupported request parameters, with the values that have no effect.
_UNSUPPORTED: dict[str, tuple[Any, ...]] = {
    "DeletionMode": ("STANDARD",),
    "DisableRollback": ("false", False),
    "OnFailure": ("ROLLBACK",),
    "OnStackFailure": ("ROLLBACK",),
    "ResourcesToImport": (),
    "RetainExceptOnCreate": ("false", False),
    "RetainResources": (),
    "StackPolicyBody": (),
    "StackPolicyURL": (),
    "TimeoutInMinutes": (),
}

_change_sets: dict[str, ChangeSet] = {}


class CloudFormationResponse(BaseResponse):
    """One method for each supported action. moto finds it by name, and refuses all other actions."""

    def __init__(self) -> None:
        super().__init__(service_name="cloudformation")
        self.automated_parameter_parsing = True

    def call_action(self) -> Any:
        try:
            self._refuse_unsupported()
            with self._acting():
                return super().call_action()
        except ValidationError as refusal:
            return self.serialized(ActionResult(refusal))

    def _refuse_unsupported(self) -> None:
        for name, harmless in _UNSUPPORTED.items():
            value = self._get_param(name)
            if value not in (None, "", [], *harmless):
                raise ValidationError(f"The embedded AWS does not support {name}={value}")

    def _acting(self) -> AbstractContextManager[None]:
        """Return a context in which calls have the permissions of a role, or of the caller if there is none.

        The role is that of the request, else of the change set, else of the stack.

        Raises:
            ValidationError: The role is invalid.
        """
        caller = self.normalized_request.environ.get(CALLER)
        if caller is None or self._get_action().startswith(_READ_PREFIXES):
            return api.acting_as(None)
        change_set = self._find_change_set() if self._get_param("ChangeSetName") else None
        holders = [item for item in (change_set, self._region.find(self._get_param("StackName") or "")) if item]
        roles = [self._get_param("RoleARN"), *(holder.settings.get("RoleARN") for holder in holders)]
        try:
            return api.acting_as(stack_credentials(caller, next(filter(None, roles), None), self.region))
        except RequestDeniedError as denied:
            raise ValidationError(denied.message) from denied

    @property
    def _region(self) -> Region:
        return stack_region(self.current_account, self.region)

    def _stack(self) -> Stack:
        return self._region.get(self._get_param("StackName"))

    def _template_body(self, stack: Stack | None) -> str:
        if self._get_param("TemplateURL"):
            return fetch_template(self._get_param("TemplateURL"), self.region)
        if self._get_bool_param("UsePreviousTemplate") and stack is not None and stack.deployment is not None:
            return stack.deployment.template.body
        body = self._get_param("TemplateBody") or ""
        refuse_large_body(body, MAX_BYTES_IN_REQUEST)
        return body

    def _deployment(self, stack: Stack | None) -> Deployment:
        """Return the deployment that a request asks for. Omitted settings keep their current values."""
        old = stack.deployment if stack is not None else None
        values: dict[str, str] = {}
        for parameter in self._get_param("Parameters") or []:
            name = parameter["ParameterKey"]
            if not parameter.get("UsePreviousValue"):
                values[name] = parameter.get("ParameterValue", "")
            elif old is None or name not in old.parameters:
                raise ValidationError(
                    f"Invalid input for parameter key {name}. Cannot specify usePreviousValue as true for a parameter "
                    "key not in the previous template"
                )
            else:
                values[name] = old.parameters[name].text  # the name of an SSM parameter, not its value
        tags = self._get_param("Tags")
        effective_tags = tag_values(old.tags if tags is None and old else tags)
        if any(key.lower().startswith("aws:") for key in effective_tags):
            raise ValidationError("aws: prefixed tag key names are not allowed for external use.")
        capabilities = self._get_param("Capabilities") or []
        return prepare(self._region, self._template_body(stack), values, effective_tags, capabilities)

    def _settings(self) -> dict[str, Any]:
        return {name: value for name in views.SETTINGS if (value := self._get_param(name)) is not None}

    def _new_stack(self, name: str) -> Stack:
        if not _NAME.fullmatch(name):
            raise ValidationError(
                f"1 validation error detected: Value '{name}' at 'stackName' failed to satisfy constraint: Member must "
                f"satisfy regular expression pattern: {_NAME.pattern}"
            )
        return self._region.new_stack(name)

    def create_stack(self) -> ActionResult:
        name = self._get_param("StackName")
        self._refuse_existing(name)
        deployment = self._deployment(None)
        stack = self._new_stack(name)
        stack.termination_protection = bool(self._get_bool_param("EnableTerminationProtection", False))
        stack_operations.deploy(self._region, stack, deployment, "CREATE", settings=self._settings())
        return ActionResult({"StackId": stack.stack_id})

    def update_stack(self) -> ActionResult:
        stack = self._stack()
        deployment = self._deployment(stack)
        if not differs(stack, deployment):
            raise ValidationError("No updates are to be performed.")
        stack_operations.deploy(self._region, stack, deployment, "UPDATE", settings=self._settings())
        return ActionResult({"StackId": stack.stack_id})

    def delete_stack(self) -> EmptyResult:
        stack = self._region.find(self._get_param("StackName"))
        if stack is not None:  # deleting a stack that does not exist succeeds
            stack_operations.delete(self._region, stack)
        return EmptyResult()

    def update_termination_protection(self) -> ActionResult:
        stack = self._stack()
        stack.termination_protection = bool(self._get_bool_param("EnableTerminationProtection"))
        return ActionResult({"StackId": stack.stack_id})

    def describe_stacks(self) -> ActionResult:
        name = self._get_param("StackName")
        stacks = [self._stack()] if name else [stack for stack in self._region.stacks if stack.deleted is None]
        return ActionResult({"Stacks": [views.stack(stack) for stack in stacks]})

    def list_stacks(self) -> ActionResult:
        statuses = self._get_param("StackStatusFilter") or []
        stacks = [stack for stack in self._region.stacks if not statuses or stack.status in statuses]
        return ActionResult({"StackSummaries": [views.stack(stack) for stack in stacks]})

    def _refuse_existing(self, name: str, *, but_in: str = "") -> None:
        stack = self._region.find(name)
        if stack is not None and stack.status != but_in:
            raise AlreadyExistsError(f"Stack [{name}] already exists")

    def get_template(self) -> ActionResult:
        source = self._change_set() if self._get_param("ChangeSetName") else self._stack()
        body = source.deployment.template.body if source.deployment else ""
        return ActionResult({"TemplateBody": body, "StagesAvailable": ["Original", "Processed"]})

    def list_stack_resources(self) -> ActionResult:
        stack = self._stack()
        return ActionResult(
            {"StackResourceSummaries": [views.resource(stack, resource) for resource in _resources(stack)]}
        )

    def describe_stack_resources(self) -> ActionResult:
        logical_id, physical_id = self._get_param("LogicalResourceId"), self._get_param("PhysicalResourceId")
        stacks = [self._stack()] if self._get_param("StackName") else self._region.stacks
        resources = [
            views.resource(stack, resource)
            for stack in stacks
            for resource in _resources(stack)
            if logical_id in (None, resource.logical_id) and physical_id in (None, resource.physical_id)
        ]
        return ActionResult({"StackResources": resources})

    def describe_stack_events(self) -> ActionResult:
        return ActionResult({"StackEvents": self._stack().events[::-1]})

    def create_change_set(self) -> ActionResult:
        stack_name, change_set_type = self._get_param("StackName"), self._get_param("ChangeSetType", "UPDATE")
        if change_set_type not in ("CREATE", "UPDATE"):
            raise ValidationError(f"The embedded AWS does not support change sets of type {change_set_type}")
        stack = self._region.find(stack_name)
        if change_set_type == "UPDATE" and stack is None:
            raise no_such_stack(stack_name)
        if change_set_type == "CREATE":
            self._refuse_existing(stack_name, but_in="REVIEW_IN_PROGRESS")
        name = self._get_param("ChangeSetName")
        if stack is not None and _find(stack, name):
            raise AlreadyExistsError(f"ChangeSet {name} already exists")
        deployment = self._deployment(stack)
        if stack is None:
            stack = self._new_stack(stack_name)
            stack.record("REVIEW_IN_PROGRESS", "User Initiated")
        change_set = ChangeSet(
            self._region,
            stack,
            deployment,
            name=name,
            change_set_type=change_set_type,
            description=self._get_param("Description"),
            settings=self._settings(),
        )
        _change_sets[change_set.change_set_id] = change_set
        return ActionResult({"Id": change_set.change_set_id, "StackId": stack.stack_id})

    def describe_change_set(self) -> ActionResult:
        with_values = self._get_bool_param("IncludePropertyValues", False)
        return ActionResult(views.change_set(self._change_set(), with_values=with_values))

    def list_change_sets(self) -> ActionResult:
        return ActionResult({"Summaries": [views.change_set(change_set) for change_set in _active(self._stack())]})

    def delete_change_set(self) -> EmptyResult:
        # Succeeds without a change set if the stack exists: the CDK CLI deletes a change set before it creates one.
        change_set = self._find_change_set()
        if change_set is None and self._get_param("StackName"):
            self._stack()
        if change_set is not None:
            _change_sets.pop(change_set.change_set_id, None)
        return EmptyResult()

    def execute_change_set(self) -> EmptyResult:
        change_set = self._change_set()
        if change_set.execution_status != "AVAILABLE":
            failed = change_set.status == "FAILED"
            raise InvalidChangeSetStatusError(
                f"ChangeSet [{change_set.change_set_id}] cannot be executed in its current "
                f"{'status' if failed else 'execution status'} of "
                f"[{change_set.status if failed else change_set.execution_status}]"
            )
        stack = change_set.stack
        for other in _active(stack):
            if other is not change_set:
                _change_sets.pop(other.change_set_id, None)
        change_set.execution = "EXECUTE_IN_PROGRESS"
        deployment, verb, settings = change_set.deployment, change_set.change_set_type, change_set.settings
        then = change_set.record_execution
        try:
            stack_operations.deploy(self._region, stack, deployment, verb, settings=settings, then=then)
        except ValidationError:
            change_set.execution = None
            raise
        return EmptyResult()

    def _change_set(self) -> ChangeSet:
        change_set = self._find_change_set()
        if change_set is None:
            raise ChangeSetNotFoundError(f"ChangeSet [{self._get_param('ChangeSetName')}] does not exist")
        return change_set

    def _find_change_set(self) -> ChangeSet | None:
        name, stack_name = self._get_param("ChangeSetName"), self._get_param("StackName")
        if name in _change_sets:
            return _change_sets[name]
        stack = self._region.find(stack_name or "")
        return _find(stack, name) if stack is not None else None


def _find(stack: Stack, name: str) -> ChangeSet | None:
    # change set names are unique within a stack only, and the CDK CLI uses the same name for all stacks
    return next((change_set for change_set in _active(stack) if change_set.name == name), None)


def _active(stack: Stack) -> list[ChangeSet]:
    """Return the change sets of a stack whose execution has not ended. The others are found by ID only."""
    done = ("EXECUTE_COMPLETE", "EXECUTE_FAILED")
    return [each for each in list(_change_sets.values()) if each.stack is stack and each.execution not in done]


def _resources(stack: Stack) -> list[StackResource]:
    return sorted(stack.resources.values(), key=lambda resource: stack.place(resource.logical_id))

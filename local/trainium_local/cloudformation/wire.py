"""The CloudFormation API: requests in, answers out. moto parses and serialises, everything else is here."""

from __future__ import annotations

from typing import Any

from moto.core.responses import ActionResult, BaseResponse, EmptyResult

from trainium_local.cloudformation import change_sets, stack_operations, template_source, views
from trainium_local.cloudformation.change_sets import ChangeSet
from trainium_local.cloudformation.deployment import prepare
from trainium_local.cloudformation.errors import (
    AlreadyExistsError,
    ChangeSetNotFoundError,
    InvalidActionError,
    InvalidChangeSetStatusError,
    ValidationError,
    no_such_stack,
)
from trainium_local.cloudformation.stack import Deployment, Region, Stack, StackResource, region_of
from trainium_local.cloudformation.template import Template
from trainium_local.cloudformation.template_checks import check

_change_sets: dict[str, ChangeSet] = {}


class CloudFormationResponse(BaseResponse):
    """One method for each action, which moto finds by its name. An action without one is refused."""

    def __init__(self) -> None:
        super().__init__(service_name="cloudformation")
        self.automated_parameter_parsing = True

    def call_action(self) -> Any:
        try:
            return super().call_action()
        except NotImplementedError:
            refusal = InvalidActionError(f"The embedded AWS does not know {self._get_action()}")
            return self.serialized(ActionResult(refusal))

    @property
    def _region(self) -> Region:
        return region_of(self.current_account, self.region)

    def _stack(self) -> Stack:
        return self._region.get(self._get_param("StackName"))

    def _template_body(self, stack: Stack | None) -> str:
        if self._get_param("TemplateURL"):
            return template_source.fetch(self._get_param("TemplateURL"), self.region)
        if self._get_bool_param("UsePreviousTemplate") and stack is not None and stack.deployment is not None:
            return stack.deployment.template.body
        return self._get_param("TemplateBody") or ""

    def _deployment(self, stack: Stack | None) -> Deployment:
        """What the request wants the stack to be; what it leaves open stays as it is."""
        old = stack.deployment if stack is not None else None
        given: dict[str, str] = {}
        for parameter in self._get_param("Parameters") or []:
            name = parameter["ParameterKey"]
            if not parameter.get("UsePreviousValue"):
                given[name] = parameter.get("ParameterValue", "")
            elif old is not None and name in old.parameters:
                given[name] = old.parameters[name].given  # the name of an SSM parameter, not what it held
        tags = self._get_param("Tags")
        wanted = {tag["Key"]: tag["Value"] for tag in tags} if tags is not None else dict(old.tags if old else {})
        return prepare(self._region, self._template_body(stack), given, wanted)

    def _rolls_back(self) -> bool:
        return not self._get_bool_param("DisableRollback", False) and self._get_param("OnFailure") != "DO_NOTHING"

    def create_stack(self) -> ActionResult:
        name = self._get_param("StackName")
        self._refuse_existing(name)
        deployment = self._deployment(None)
        stack = self._region.new_stack(name)
        stack.termination_protection = bool(self._get_bool_param("EnableTerminationProtection", False))
        stack_operations.create(self._region, stack, deployment, rollback=self._rolls_back())
        return ActionResult({"StackId": stack.stack_id})

    def update_stack(self) -> ActionResult:
        stack = self._stack()
        deployment = self._deployment(stack)
        if not change_sets.differs(stack.deployment, deployment):
            raise ValidationError("No updates are to be performed.")
        stack_operations.update(self._region, stack, deployment, rollback=self._rolls_back())
        return ActionResult({"StackId": stack.stack_id})

    def delete_stack(self) -> EmptyResult:
        stack = self._region.find(self._get_param("StackName"))
        if stack is not None:  # deleting what is not there succeeds
            stack_operations.delete(self._region, stack)
        return EmptyResult()

    def rollback_stack(self) -> ActionResult:
        stack = self._stack()
        stack_operations.roll_back(self._region, stack)
        return ActionResult({"StackId": stack.stack_id})

    def update_termination_protection(self) -> ActionResult:
        stack = self._stack()
        stack.termination_protection = bool(self._get_bool_param("EnableTerminationProtection"))
        return ActionResult({"StackId": stack.stack_id})

    def describe_stacks(self) -> ActionResult:
        name = self._get_param("StackName")
        alive = [stack for stack in self._region.stacks if stack.deleted is None]
        return ActionResult({"Stacks": [views.stack(one) for one in ([self._stack()] if name else alive)]})

    def list_stacks(self) -> ActionResult:
        wanted = self._get_param("StackStatusFilter") or []
        found = [one for one in self._region.stacks if not wanted or one.status in wanted]
        return ActionResult({"StackSummaries": [views.summary(one) for one in found]})

    def _refuse_existing(self, name: str) -> None:
        stack = self._region.find(name)
        if stack is not None and stack.status != "REVIEW_IN_PROGRESS":
            raise AlreadyExistsError(f"Stack [{name}] already exists")

    def get_template(self) -> ActionResult:
        if self._get_param("ChangeSetName"):
            deployment: Deployment | None = self._change_set().deployment
        else:
            deployment = self._stack().deployment
        body = deployment.template.body if deployment else ""
        return ActionResult({"TemplateBody": body, "StagesAvailable": ["Original", "Processed"]})

    def get_template_summary(self) -> ActionResult:
        name = self._get_param("StackName")
        template = self._summarised(self._stack() if name else None)
        return ActionResult(
            {
                "Parameters": _declarations(template),
                "Description": template.document.get("Description"),
                "ResourceTypes": sorted({resource["Type"] for resource in template.resources.values()}),
                "Version": str(template.document.get("AWSTemplateFormatVersion", "")) or None,
            }
        )

    def validate_template(self) -> ActionResult:
        template = Template.parse(self._template_body(None))
        check(template, self.region)
        described = {"Parameters": _declarations(template), "Description": template.document.get("Description")}
        return ActionResult(described)

    def _summarised(self, stack: Stack | None) -> Template:
        if stack is not None and stack.deployment is not None:
            return stack.deployment.template
        return Template.parse(self._template_body(stack))

    def list_stack_resources(self) -> ActionResult:
        stack = self._stack()
        return ActionResult({"StackResourceSummaries": [views.resource(stack, one) for one in _resources(stack)]})

    def describe_stack_resources(self) -> ActionResult:
        logical_id, physical_id = self._get_param("LogicalResourceId"), self._get_param("PhysicalResourceId")
        stacks = [self._stack()] if self._get_param("StackName") else self._region.stacks
        found = [
            views.resource(stack, one)
            for stack in stacks
            for one in _resources(stack)
            if logical_id in (None, one.logical_id) and physical_id in (None, one.physical_id)
        ]
        return ActionResult({"StackResources": found})

    def describe_stack_resource(self) -> ActionResult:
        stack, logical_id = self._stack(), self._get_param("LogicalResourceId")
        if logical_id not in stack.resources:
            raise ValidationError(f"Resource {logical_id} does not exist for stack {stack.name}")
        return ActionResult({"StackResourceDetail": views.resource(stack, stack.resources[logical_id])})

    def describe_stack_events(self) -> ActionResult:
        stack = self._stack()
        return ActionResult({"StackEvents": [views.event(stack, one) for one in reversed(stack.events)]})

    def describe_events(self) -> ActionResult:
        only_failed = str((self._get_param("Filters") or {}).get("FailedEvents")).lower() == "true"
        if self._get_param("ChangeSetName"):
            change_set = self._change_set()
            events = [views.validation_event(change_set, one) for one in change_set.invalid]
        else:
            stack = self._stack()
            found = [one for one in reversed(stack.events) if not only_failed or one.status.endswith("_FAILED")]
            events = [views.operation_event(stack, one) for one in found]
        return ActionResult({"OperationEvents": events})

    def list_exports(self) -> ActionResult:
        exports = [
            {"ExportingStackId": stack.stack_id, "Name": name, "Value": value}
            for name, (stack, value) in self._region.exports().items()
        ]
        return ActionResult({"Exports": exports})

    def list_imports(self) -> ActionResult:
        name = self._get_param("ExportName")
        users = [stack.name for stack in self._region.importers(name)]
        if not users:
            raise ValidationError(f"Export '{name}' is not imported by any stack.")
        return ActionResult({"Imports": users})

    def create_change_set(self) -> ActionResult:
        stack_name, change_set_type = self._get_param("StackName"), self._get_param("ChangeSetType", "UPDATE")
        stack = self._region.find(stack_name)
        if change_set_type == "UPDATE" and stack is None:
            raise no_such_stack(stack_name)
        if change_set_type == "CREATE":
            self._refuse_existing(stack_name)
        elif change_set_type != "UPDATE":
            raise ValidationError(f"The embedded AWS makes no change sets of type {change_set_type}")
        name = self._get_param("ChangeSetName")
        if stack is not None and _find(stack, name):
            raise AlreadyExistsError(f"ChangeSet {name} already exists")
        deployment = self._deployment(stack)
        if stack is None:
            stack = self._region.new_stack(stack_name)
            stack.record("REVIEW_IN_PROGRESS", "User Initiated")
        change_set = change_sets.build(
            self._region,
            stack,
            deployment,
            name=name,
            change_set_type=change_set_type,
            description=self._get_param("Description"),
        )
        _change_sets[change_set.change_set_id] = change_set
        return ActionResult({"Id": change_set.change_set_id, "StackId": stack.stack_id})

    def describe_change_set(self) -> ActionResult:
        return ActionResult(views.change_set(self._change_set()))

    def list_change_sets(self) -> ActionResult:
        stack = self._stack()
        found = [one for one in _change_sets.values() if one.stack is stack]
        return ActionResult({"Summaries": [views.change_set_summary(one) for one in found]})

    def delete_change_set(self) -> EmptyResult:
        # Succeeds without a change set as long as the stack is there: the CDK CLI deletes before it creates.
        change_set = self._find_change_set()
        if change_set is not None:
            _change_sets.pop(change_set.change_set_id, None)
        elif self._get_param("StackName"):
            self._stack()
        return EmptyResult()

    def execute_change_set(self) -> EmptyResult:
        change_set = self._change_set()
        if change_set.execution_status != "AVAILABLE":
            raise InvalidChangeSetStatusError(
                f"ChangeSet [{change_set.change_set_id}] cannot be executed in its current status of "
                f"[{change_set.execution_status}]"
            )
        operation = stack_operations.create if change_set.change_set_type == "CREATE" else stack_operations.update
        change_set.executed = True
        operation(self._region, change_set.stack, change_set.deployment, rollback=self._rolls_back())
        _change_sets.pop(change_set.change_set_id, None)
        return EmptyResult()

    def _change_set(self) -> ChangeSet:
        found = self._find_change_set()
        if found is None:
            raise ChangeSetNotFoundError(f"ChangeSet [{self._get_param('ChangeSetName')}] does not exist")
        return found

    def _find_change_set(self) -> ChangeSet | None:
        name, stack_name = self._get_param("ChangeSetName"), self._get_param("StackName")
        if name in _change_sets:
            return _change_sets[name]
        stack = self._region.find(stack_name or "")
        return _find(stack, name) if stack is not None else None


def _find(stack: Stack, name: str) -> ChangeSet | None:
    # a change set's name is unique within its stack only; the CDK CLI gives all of them the same
    return next((one for one in _change_sets.values() if one.stack is stack and one.name == name), None)


def _resources(stack: Stack) -> list[StackResource]:
    order = stack.deployment.template.order if stack.deployment else []
    return sorted(
        stack.resources.values(), key=lambda one: order.index(one.logical_id) if one.logical_id in order else -1
    )


def _declarations(template: Template) -> list[dict[str, Any]]:
    return [
        {
            "ParameterKey": name,
            "DefaultValue": declaration.get("Default"),
            "ParameterType": declaration["Type"],
            "NoEcho": str(declaration.get("NoEcho")).lower() == "true",
            "Description": declaration.get("Description"),
        }
        for name, declaration in template.parameters.items()
    ]

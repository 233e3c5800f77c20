"""The CloudFormation API: requests in, answers out. moto parses and serialises, everything else is here."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from moto.core.responses import ActionResult, BaseResponse, EmptyResult

from trainium_local.cloudformation import drift, signals, stack_operations, stack_policy, template_source, views
from trainium_local.cloudformation.change_sets import ChangeSet, differs
from trainium_local.cloudformation.deployment import prepare
from trainium_local.cloudformation.errors import (
    AlreadyExistsError,
    ChangeSetNotFoundError,
    InvalidChangeSetStatusError,
    ValidationError,
    no_such_stack,
)
from trainium_local.cloudformation.execution_role import acting_for
from trainium_local.cloudformation.paging import page
from trainium_local.cloudformation.stack import Deployment, Json, Region, Stack, StackResource, region_of
from trainium_local.cloudformation.stack_operations import OnFailure
from trainium_local.cloudformation.template import Template
from trainium_local.cloudformation.template_checks import check
from trainium_local.cloudformation.template_structure import check_request
from trainium_local.tags import tag_values

_change_sets: dict[str, ChangeSet] = {}
_detections: dict[str, Json] = {}


class CloudFormationResponse(BaseResponse):
    """One method for each action, which moto finds by its name. An action without one is refused."""

    def __init__(self) -> None:
        super().__init__(service_name="cloudformation")
        self.automated_parameter_parsing = True

    def call_action(self) -> Any:
        try:
            with acting_for(self):
                return super().call_action()
        except ValidationError as refusal:
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
        body = self._get_param("TemplateBody") or ""
        check_request(TemplateBody=body)
        return body

    def _deployment(self, stack: Stack | None) -> Deployment:
        """What the request wants the stack to be; what it leaves open stays as it is."""
        old = stack.deployment if stack is not None else None
        given: dict[str, str] = {}
        for parameter in self._get_param("Parameters") or []:
            name, value = parameter["ParameterKey"], parameter.get("ParameterValue", "")
            if not parameter.get("UsePreviousValue"):
                given[name] = value
            elif value or old is None or name not in old.parameters:
                wrong = "and non empty value for a parameter" if value else "for a parameter key not in the previous"
                raise ValidationError(
                    f"Invalid input for parameter key {name}. Cannot specify usePreviousValue as true {wrong}"
                    f"{'' if value else ' template'}"
                )
            else:
                given[name] = old.parameters[name].given  # the name of an SSM parameter, not what it held
        tags = self._get_param("Tags")
        wanted = tag_values(old.tags if tags is None and old else tags)
        check_request(Parameters=given, Tags=wanted)
        acknowledged = self._get_param("Capabilities") or []
        expands = self._get_action() != "CreateChangeSet"  # a change set is there to be read first
        return prepare(self._region, self._template_body(stack), given, wanted, acknowledged, expands=expands)

    def _on_failure(self, requested: str | None = None) -> OnFailure:
        default = "DO_NOTHING" if self._get_bool_param("DisableRollback", False) else "ROLLBACK"
        action = self._get_param("OnFailure") or requested or default
        return OnFailure(action=action, retain=not self._get_bool_param("RetainExceptOnCreate", False))

    def _policy(self, name: str) -> str:
        return stack_policy.given(self._get_param(f"{name}Body"), self._get_param(f"{name}URL"), self.region)

    def _settings(self) -> dict[str, Any]:
        return {name: value for name in views.SETTINGS if (value := self._get_param(name)) is not None}

    def _paged(self, member: str, entries: Sequence[Any], **more: Any) -> ActionResult:
        entries, following = page(entries, self._get_param("NextToken"), self._get_param("MaxResults"))
        return ActionResult({**more, member: entries, "NextToken": following})

    def create_stack(self) -> ActionResult:
        name = self._get_param("StackName")
        check_request(StackName=name)
        self._refuse_existing(name)
        deployment, policy = self._deployment(None), self._policy("StackPolicy")
        stack = self._region.new_stack(name)
        stack.policy = policy
        stack.settings = self._settings()
        stack.termination_protection = bool(self._get_bool_param("EnableTerminationProtection", False))
        stack_operations.deploy(self._region, stack, deployment, self._on_failure(), "CREATE")
        return ActionResult({"StackId": stack.stack_id})

    def update_stack(self) -> ActionResult:
        stack = self._stack()
        deployment = self._deployment(stack)
        if not differs(stack, deployment):
            raise ValidationError("No updates are to be performed.")
        policy, stack.policy_during_update = self._policy("StackPolicy"), self._policy("StackPolicyDuringUpdate")
        stack_operations.deploy(self._region, stack, deployment, self._on_failure(), "UPDATE")
        stack.settings |= self._settings()
        stack.policy = policy or stack.policy
        return ActionResult({"StackId": stack.stack_id})

    def set_stack_policy(self) -> EmptyResult:
        self._stack().policy = self._policy("StackPolicy")
        return EmptyResult()

    def get_stack_policy(self) -> ActionResult:
        return ActionResult({"StackPolicyBody": self._stack().policy or None})

    def cancel_update_stack(self) -> EmptyResult:
        stack_operations.cancel_update(self._region, self._stack())
        return EmptyResult()

    def delete_stack(self) -> EmptyResult:
        stack = self._region.find(self._get_param("StackName"))
        if stack is not None:  # deleting what is not there succeeds
            retained = self._get_param("RetainResources") or []
            force = self._get_param("DeletionMode") == "FORCE_DELETE_STACK"
            stack_operations.delete(self._region, stack, retained=retained, force=force)
        return EmptyResult()

    def rollback_stack(self) -> ActionResult:
        stack = self._stack()
        stack_operations.roll_back(self._region, stack, retain=self._on_failure().retain)
        return ActionResult({"StackId": stack.stack_id})

    def continue_update_rollback(self) -> EmptyResult:
        skip, force = self._get_param("ResourcesToSkip") or [], bool(self._get_bool_param("ForceRollback", False))
        stack_operations.continue_rollback(self._region, self._stack(), skip=skip, force=force)
        return EmptyResult()

    def signal_resource(self) -> EmptyResult:
        names = (self._get_param(name) for name in ("LogicalResourceId", "UniqueId", "Status"))
        signals.receive(self._stack(), *names)
        return EmptyResult()

    def detect_stack_drift(self) -> ActionResult:
        stack, only = self._stack(), self._get_param("LogicalResourceIds")
        looked_at = [one for one in _resources(stack) if not only or one.logical_id in only]
        stack.drifts |= {one.logical_id: drift.detect(stack, one) for one in looked_at}
        detection = drift.detection(stack)
        _detections[detection["StackDriftDetectionId"]] = detection
        return ActionResult({"StackDriftDetectionId": detection["StackDriftDetectionId"]})

    def describe_stack_drift_detection_status(self) -> ActionResult:
        detection_id = self._get_param("StackDriftDetectionId")
        if detection_id not in _detections:
            raise ValidationError(f"StackDriftDetectionId {detection_id} does not exist")
        return ActionResult(_detections[detection_id])

    def describe_stack_resource_drifts(self) -> ActionResult:
        wanted, drifts = self._get_param("StackResourceDriftStatusFilters"), self._stack().drifts.values()
        found = [one for one in drifts if not wanted or one["StackResourceDriftStatus"] in wanted]
        return self._paged("StackResourceDrifts", found)

    def detect_stack_resource_drift(self) -> ActionResult:
        stack = self._stack()
        found = drift.detect(stack, self._resource(stack))
        stack.drifts[found["LogicalResourceId"]] = found
        return ActionResult({"StackResourceDrift": found})

    def update_termination_protection(self) -> ActionResult:
        stack = self._stack()
        if stack.root_id is not None:
            raise ValidationError(f"Termination protection of a nested stack is that of its root stack {stack.root_id}")
        for one in self._region.stacks:
            if stack.stack_id in (one.stack_id, one.root_id):
                one.termination_protection = bool(self._get_bool_param("EnableTerminationProtection"))
        return ActionResult({"StackId": stack.stack_id})

    def describe_stacks(self) -> ActionResult:
        name = self._get_param("StackName")
        found = [self._stack()] if name else [one for one in self._region.stacks if one.deleted is None]
        return self._paged("Stacks", [views.stack(one) for one in found])

    def list_stacks(self) -> ActionResult:
        wanted = self._get_param("StackStatusFilter") or []
        found = [one for one in self._region.stacks if not wanted or one.status in wanted]
        return self._paged("StackSummaries", [views.stack(one) for one in found])

    def _refuse_existing(self, name: str, *, but_in: str = "") -> None:
        stack = self._region.find(name)
        if stack is not None and stack.status != but_in:
            raise AlreadyExistsError(f"Stack [{name}] already exists")

    def get_template(self) -> ActionResult:
        if self._get_param("ChangeSetName"):
            deployment: Deployment | None = self._change_set().deployment
        else:
            deployment = self._stack().deployment
        body = deployment.template.body if deployment else ""
        return ActionResult({"TemplateBody": body, "StagesAvailable": ["Original", "Processed"]})

    def get_template_summary(self) -> ActionResult:
        deployment = self._stack().deployment if self._get_param("StackName") else None
        template = deployment.template if deployment else Template.parse(self._template_body(None))
        return ActionResult(views.template(template, self.region))

    def validate_template(self) -> ActionResult:
        template = Template.parse(self._template_body(None))
        check(template, self.region)
        return ActionResult(views.template(template, self.region))

    def list_stack_resources(self) -> ActionResult:
        stack = self._stack()
        return self._paged("StackResourceSummaries", [views.resource(stack, one) for one in _resources(stack)])

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
        stack = self._stack()
        return ActionResult({"StackResourceDetail": views.resource(stack, self._resource(stack))})

    def _resource(self, stack: Stack) -> StackResource:
        logical_id = self._get_param("LogicalResourceId")
        if logical_id not in stack.resources:
            raise ValidationError(f"Resource {logical_id} does not exist for stack {stack.name}")
        return stack.resources[logical_id]

    def describe_stack_events(self) -> ActionResult:
        return self._paged("StackEvents", self._stack().events[::-1])

    def describe_events(self) -> ActionResult:
        only_failed = str((self._get_param("Filters") or {}).get("FailedEvents")).lower() == "true"
        if self._get_param("ChangeSetName"):
            events = self._change_set().invalid
        else:
            events = [
                {**event, "EventType": "STACK_EVENT"}
                for event in reversed(self._stack().events)
                if not only_failed or event["ResourceStatus"].endswith("_FAILED")
            ]
        return self._paged("OperationEvents", events)

    def list_exports(self) -> ActionResult:
        exports = [
            {"ExportingStackId": stack.stack_id, "Name": name, "Value": value}
            for name, (stack, value) in self._region.exports().items()
        ]
        return self._paged("Exports", exports)

    def list_imports(self) -> ActionResult:
        name = self._get_param("ExportName")
        users = [stack.name for stack in self._region.importers(name)]
        if not users:
            raise ValidationError(f"Export '{name}' is not imported by any stack.")
        return self._paged("Imports", users)

    def create_change_set(self) -> ActionResult:
        stack_name, change_set_type = self._get_param("StackName"), self._get_param("ChangeSetType", "UPDATE")
        stack = self._region.find(stack_name)
        if change_set_type == "UPDATE" and stack is None:
            raise no_such_stack(stack_name)
        if change_set_type == "CREATE":
            self._refuse_existing(stack_name, but_in="REVIEW_IN_PROGRESS")
        name = self._get_param("ChangeSetName")
        check_request(ChangeSetName=name, **({"StackName": stack_name} if stack is None else {}))
        if stack is not None and _find(stack, name):
            raise AlreadyExistsError(f"ChangeSet {name} already exists")
        deployment = self._deployment(stack)
        if change_set_type == "IMPORT":
            wanted = self._get_param("ResourcesToImport") or []
            imports = {one["LogicalResourceId"]: "|".join(one["ResourceIdentifier"].values()) for one in wanted}
            deployment = replace(deployment, imports=imports)
        if stack is None:
            stack = self._region.new_stack(stack_name)
            stack.record("REVIEW_IN_PROGRESS", "User Initiated")
        change_set = ChangeSet(
            self._region,
            stack,
            deployment,
            name=name,
            change_set_type=change_set_type,
            description=self._get_param("Description"),
            settings=self._settings() | {"OnStackFailure": self._get_param("OnStackFailure")},
        )
        if change_set_type == "IMPORT":
            change_set.refuse_wrong_import()
        _change_sets[change_set.change_set_id] = change_set
        return ActionResult({"Id": change_set.change_set_id, "StackId": stack.stack_id})

    def describe_change_set(self) -> ActionResult:
        with_values = self._get_bool_param("IncludePropertyValues", False)
        described = views.change_set(self._change_set(), with_values=with_values)
        return self._paged("Changes", described.pop("Changes"), **described)

    def list_change_sets(self) -> ActionResult:
        return self._paged("Summaries", [views.change_set(one) for one in _active(self._stack())])

    def delete_change_set(self) -> EmptyResult:
        # Succeeds without a change set as long as the stack is there: the CDK CLI deletes before it creates.
        change_set = self._find_change_set()
        if change_set is None and self._get_param("StackName"):
            self._stack()
        if change_set is not None and change_set.execution == "EXECUTE_IN_PROGRESS":
            raise InvalidChangeSetStatusError(
                f"ChangeSet [{change_set.change_set_id}] cannot be deleted in its current execution status of "
                f"[{change_set.execution}]"
            )
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
        stack, on_failure = change_set.stack, self._on_failure(change_set.settings["OnStackFailure"])
        stack.settings |= {name: value for name, value in change_set.settings.items() if value is not None}
        stack.policy_during_update = ""
        for other in [one for one in _active(stack) if one is not change_set]:
            _change_sets.pop(other.change_set_id, None)
        change_set.execution = "EXECUTE_IN_PROGRESS"
        deployment, verb = change_set.deployment, change_set.change_set_type
        try:
            stack_operations.deploy(self._region, stack, deployment, on_failure, verb, then=change_set.executed)
        except ValidationError:
            change_set.execution = None
            raise
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
    return next((one for one in _active(stack) if one.name == name), None)


def _active(stack: Stack) -> list[ChangeSet]:
    """The change sets of a stack but for those that were executed, which only their ids find."""
    done = ("EXECUTE_COMPLETE", "EXECUTE_FAILED")
    return [one for one in list(_change_sets.values()) if one.stack is stack and one.execution not in done]


def _resources(stack: Stack) -> list[StackResource]:
    return sorted(stack.resources.values(), key=lambda one: stack.place(one.logical_id))

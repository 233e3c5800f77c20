"""Change sets: what a deployment would do to a stack, worked out without touching anything."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from trainium_local import clock
from trainium_local.cloudformation.deployment import ExistingResources, resolver, with_stack_tags
from trainium_local.cloudformation.errors import ValidationError
from trainium_local.cloudformation.stack import Deployment, Region, Stack, StackResource
from trainium_local.resources import schemas
from trainium_local.resources.registry import Properties
from trainium_local.resources.schemas import KNOWN_AFTER_APPLY, Problem

#: The words by which clients recognise a change set that would change nothing.
NO_CHANGES = "The submitted information didn't contain changes. Submit different information to create a change set."
_INVALID = "The following hook(s)/validation failed: [AWS::EarlyValidation::PropertyValidation]."


_ACTIONS = ("Add", "Import", "Modify", "Remove")


@dataclass(frozen=True, kw_only=True)
class PropertyChange:
    """A changed property. `recreation`: Never, Conditionally or Always."""

    name: str
    recreation: str
    known: bool


@dataclass(frozen=True, kw_only=True)
class Change:
    """What would happen to one resource: Add, Import, Modify or Remove."""

    action: str
    logical_id: str
    resource_type: str
    physical_id: str | None = None
    properties: tuple[PropertyChange, ...] = ()

    @property
    def replacement(self) -> str | None:
        """True, Conditional or False for a Modify."""
        if self.action != "Modify":
            return None
        worst = {change.recreation for change in self.properties}
        return "True" if "Always" in worst else "Conditional" if "Conditionally" in worst else "False"


@dataclass(frozen=True, kw_only=True)
class InvalidProperty:
    """A property that a type's schema does not allow, found before anything was deployed."""

    logical_id: str
    resource_type: str
    problem: Problem


@dataclass(kw_only=True)
class ChangeSet:
    """A change set of one stack. `base` is what the stack was when it was made; once it is another, it is obsolete."""

    name: str
    change_set_id: str
    change_set_type: str
    stack: Stack
    deployment: Deployment
    description: str | None
    changes: list[Change]
    invalid: list[InvalidProperty]
    is_change: bool
    settings: Mapping[str, Any]
    base: Deployment | None
    created: datetime = field(default_factory=clock.now)
    execution: str | None = None

    @property
    def status(self) -> str:
        return "CREATE_COMPLETE" if self.is_change and not self.invalid else "FAILED"

    @property
    def execution_status(self) -> str:
        if self.execution or self.status == "FAILED":
            return self.execution or "UNAVAILABLE"
        return "AVAILABLE" if self.stack.deployment is self.base else "OBSOLETE"

    def executed(self, succeeded: bool) -> None:
        self.execution = "EXECUTE_COMPLETE" if succeeded else "EXECUTE_FAILED"

    @property
    def status_reason(self) -> str | None:
        if self.invalid:
            return " ".join([_INVALID, *(f"{one.logical_id} {one.problem}" for one in self.invalid)])
        return None if self.is_change else NO_CHANGES


def build(
    region: Region,
    stack: Stack,
    deployment: Deployment,
    *,
    name: str,
    change_set_type: str,
    description: str | None,
    settings: Mapping[str, Any],
) -> ChangeSet:
    """Work out what `deployment` would do to `stack`."""
    preview = _Preview(region, stack, deployment)
    changes = preview.changes()
    return ChangeSet(
        name=name,
        change_set_id=f"arn:aws:cloudformation:{stack.region}:{stack.account}:changeSet/{name}/{uuid.uuid4()}",
        change_set_type=change_set_type,
        stack=stack,
        deployment=deployment,
        description=description,
        changes=changes,
        invalid=preview.invalid,
        settings=settings,
        base=stack.deployment,
        is_change=bool(changes) or differs(stack, deployment),
    )


def refuse_wrong_import(stack: Stack, deployment: Deployment, changes: list[Change]) -> None:
    """Raise ValidationError if an import would do more than import, or import what would go with the stack."""
    resources, outputs = deployment.template.resources, deployment.template.outputs
    found = {action: [one.logical_id for one in changes if one.action == action] for action in _ACTIONS}
    refusals = {
        "You have modified resources [{}] in your template that are not being imported. Update, create or delete "
        "operations cannot be executed during import operations.": found["Modify"] + found["Remove"],
        "Resources [{}] is missing from ResourceToImport list": found["Add"],
        "Resources [{}] to import are not new in the template": sorted(
            deployment.imports.keys() - set(found["Import"])
        ),
        "The following resources to import [{}] must have DeletionPolicy attribute specified in the template.": [
            name for name in found["Import"] if "DeletionPolicy" not in resources[name]
        ],
        "As part of the import operation, you cannot modify or add [{}]": ["Outputs"]
        if outputs != (stack.deployment.template.outputs if stack.deployment else {})
        else [],
    }
    for refusal, names in refusals.items():
        if names:
            raise ValidationError(refusal.format(", ".join(names)))


def differs(stack: Stack, new: Deployment) -> bool:
    """Whether something changes, be it no resource but outputs, metadata, policies, tags; or is to be tried again."""
    old = stack.deployment
    return (
        old is None
        or stack.status.endswith("_FAILED")
        or old.template.document != new.template.document
        or old.given_parameters != new.given_parameters
        or old.tags != new.tags
    )


class _Preview:
    """Resolves the deployment with what is known: a value that depends on a coming change stays open."""

    def __init__(self, region: Region, stack: Stack, deployment: Deployment) -> None:
        self._stack, self._deployment = stack, deployment
        self._modified: dict[str, Change] = {}
        self._resolver = resolver(region, stack, deployment, self)
        self._existing = ExistingResources(stack.resources, stack.region)
        self.invalid: list[InvalidProperty] = []

    def ref(self, logical_id: str) -> str:
        change = self._modified.get(logical_id)
        stays = logical_id in self._stack.resources and (change is None or change.replacement == "False")
        return self._existing.ref(logical_id) if stays else KNOWN_AFTER_APPLY

    def attribute(self, logical_id: str, name: str) -> Any:
        stays = logical_id in self._stack.resources and logical_id not in self._modified
        return self._existing.attribute(logical_id, name) if stays else KNOWN_AFTER_APPLY

    def changes(self) -> list[Change]:
        template = self._deployment.template
        wanted = [
            name for name in template.order if self._resolver.condition(template.resources[name].get("Condition"))
        ]
        found = [change for name in wanted if (change := self._change(name, template.resources[name]))]
        gone = [resource for name, resource in self._stack.resources.items() if name not in wanted]
        return found + [
            Change(
                action="Remove",
                logical_id=resource.logical_id,
                resource_type=resource.resource_type,
                physical_id=resource.physical_id,
            )
            for resource in gone
        ]

    def _change(self, logical_id: str, definition: Mapping[str, Any]) -> Change | None:
        resource_type = definition["Type"]
        properties = self._resolver.resolve(definition.get("Properties") or {})
        schema = schemas.find(resource_type, self._stack.region)
        for problem in schema.problems(properties) if schema else []:
            self.invalid.append(InvalidProperty(logical_id=logical_id, resource_type=resource_type, problem=problem))
        existing = self._stack.resources.get(logical_id)
        if existing is None:
            imported = self._deployment.imports.get(logical_id)
            action = "Import" if imported else "Add"
            return Change(action=action, logical_id=logical_id, resource_type=resource_type, physical_id=imported)
        tagged = with_stack_tags(resource_type, self._stack.region, properties, self._deployment.tags)
        create_only = schema.create_only(existing.properties, tagged) if schema else frozenset[str]()
        changed = _changed(existing, tagged, create_only)
        if not changed:
            return None
        self._modified[logical_id] = Change(
            action="Modify",
            logical_id=logical_id,
            resource_type=resource_type,
            physical_id=existing.physical_id,
            properties=changed,
        )
        return self._modified[logical_id]


def _changed(existing: StackResource, new: Properties, create_only: frozenset[str]) -> tuple[PropertyChange, ...]:
    old, found = existing.properties, list[PropertyChange]()
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            known = KNOWN_AFTER_APPLY not in json.dumps(new.get(name), default=str)
            recreation = ("Always" if known else "Conditionally") if name in create_only else "Never"
            found.append(PropertyChange(name=name, recreation=recreation, known=known))
    return tuple(found)

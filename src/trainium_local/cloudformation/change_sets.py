"""Change sets: the changes that a deployment would make to a stack."""

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from trainium_local import clock
from trainium_local.cloudformation.deployment import Existing, resolver, with_stack_tags
from trainium_local.cloudformation.stack import Deployment, Json, Region, Stack
from trainium_local.cloudformation.values import references
from trainium_local.resources import schemas
from trainium_local.resources.registry import Properties
from trainium_local.resources.schemas import KNOWN_AFTER_APPLY

#: Clients recognise a change set without changes by this text.
NO_CHANGES = "The submitted information didn't contain changes. Submit different information to create a change set."


class ChangeSet:
    """The changes that a deployment would make to a stack. It is obsolete once the stack has another deployment.

    Attributes:
        changes: Each has the shape of ResourceChange in the API.
    """

    def __init__(
        self,
        region: Region,
        stack: Stack,
        deployment: Deployment,
        *,
        name: str,
        change_set_type: str,
        description: str | None,
        settings: Mapping[str, Any],
    ) -> None:
        self.name, self.change_set_type, self.description = name, change_set_type, description
        self.change_set_id = f"arn:aws:cloudformation:{stack.region}:{stack.account}:changeSet/{name}/{uuid.uuid4()}"
        self.stack, self.deployment, self.settings = stack, deployment, settings
        self.changes = _Preview(region, stack, deployment).changes()
        self.created = clock.now()
        self.execution: str | None = None
        self._base, self._is_change = stack.deployment, bool(self.changes) or differs(stack, deployment)

    @property
    def status(self) -> str:
        return "CREATE_COMPLETE" if self._is_change else "FAILED"

    @property
    def execution_status(self) -> str:
        if self.execution or self.status == "FAILED":
            return self.execution or "UNAVAILABLE"
        return "AVAILABLE" if self.stack.deployment is self._base else "OBSOLETE"

    @property
    def status_reason(self) -> str | None:
        return None if self._is_change else NO_CHANGES

    def record_execution(self, succeeded: bool) -> None:
        self.execution = "EXECUTE_COMPLETE" if succeeded else "EXECUTE_FAILED"


def differs(stack: Stack, new: Deployment) -> bool:
    """Return whether anything changes, including outputs, metadata, policies and tags."""
    old = stack.deployment
    return (
        old is None
        or old.template.document != new.template.document
        or old.parameter_texts != new.parameter_texts
        or old.tags != new.tags
    )


class _Preview(Existing):
    """Resolves the deployment with known values. A value that depends on a pending change remains unresolved."""

    def __init__(self, region: Region, stack: Stack, deployment: Deployment) -> None:
        super().__init__(region, stack)
        self._deployment = deployment
        self._modified: dict[str, Json] = {}
        self._resolver = resolver(region, stack, deployment, self)

    def ref(self, logical_id: str) -> str:
        replacement = self._modified.get(logical_id, {}).get("Replacement", "False")
        stays = logical_id in self._stack.resources and replacement == "False"
        return super().ref(logical_id) if stays else KNOWN_AFTER_APPLY

    def attribute(self, logical_id: str, name: str) -> Any:
        stays = logical_id in self._stack.resources and logical_id not in self._modified
        return super().attribute(logical_id, name) if stays else KNOWN_AFTER_APPLY

    def changes(self) -> list[Json]:
        template = self._deployment.template
        included = [
            name for name in template.order if self._resolver.condition(template.resources[name].get("Condition"))
        ]
        changes = [change for name in included if (change := self._change(name, template.resources[name]))]
        return changes + [
            _change("Remove", resource.logical_id, resource.resource_type, resource.physical_id)
            for name, resource in self._stack.resources.items()
            if name not in included
        ]

    def _change(self, logical_id: str, definition: Mapping[str, Any]) -> Json | None:
        resource_type = definition["Type"]
        properties = self._resolver.resolve(definition.get("Properties") or {})
        schema = schemas.find(resource_type, self._stack.region)
        existing = self._stack.resources.get(logical_id)
        if existing is None:
            return _change("Add", logical_id, resource_type, None)
        tagged = with_stack_tags(resource_type, self._stack.region, properties, self._deployment.tags)
        create_only = schema.create_only(existing.properties, tagged) if schema else frozenset[str]()
        conditionally = schema.conditionally_create_only(existing.properties, tagged) if schema else frozenset[str]()
        causes = {name: self._causes(value) for name, value in (definition.get("Properties") or {}).items()}
        details = _details(existing.properties, tagged, create_only, conditionally, causes)
        if not details:
            return None
        change = _change("Modify", logical_id, resource_type, existing.physical_id)
        worst = {detail["Target"]["RequiresRecreation"] for detail in details}
        certain = {detail["Target"]["RequiresRecreation"] for detail in details if detail["Evaluation"] == "Static"}
        replaced = "True" if "Always" in certain else "Conditional" if worst != {"Never"} else "False"
        self._modified[logical_id] = change | {"Replacement": replaced, "Scope": ["Properties"], "Details": details}
        return self._modified[logical_id]

    def _causes(self, value: Any) -> list[str]:
        """Return the references in a property to resources that may change, as `CausingEntity` names them."""
        modified = (reference for reference in references(value) if reference.name in self._modified)
        return list(
            dict.fromkeys(
                f"{reference.name}.{reference.attribute}" if reference.attribute else reference.name
                for reference in modified
            )
        )


def _change(action: str, logical_id: str, resource_type: str, physical_id: str | None) -> Json:
    return {
        "Action": action,
        "LogicalResourceId": logical_id,
        "PhysicalResourceId": physical_id,
        "ResourceType": resource_type,
        "Scope": [],
        "Details": [],
    }


def _details(
    old: Properties,
    new: Properties,
    create_only: frozenset[str],
    conditionally: frozenset[str],
    causes: Mapping[str, Sequence[str]],
) -> list[Json]:
    details = list[Json]()
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            is_known = KNOWN_AFTER_APPLY not in json.dumps(new.get(name), default=str)
            recreation = "Conditionally" if name in conditionally else "Never"
            recreation = "Always" if name in create_only else recreation
            values = {"BeforeValue": _shown(old.get(name)), "AfterValue": _shown(new.get(name))}
            target = {"Attribute": "Properties", "Name": name, "RequiresRecreation": recreation, **values}
            if is_known:
                details.append({"Target": target, "Evaluation": "Static", "ChangeSource": "DirectModification"})
                continue
            source = {"Target": target, "Evaluation": "Dynamic"}
            for cause in causes.get(name) or [""]:
                kind = "ResourceAttribute" if "." in cause else "ResourceReference"
                details.append(source | {"ChangeSource": kind} | ({"CausingEntity": cause} if cause else {}))
    return details


def _shown(value: Any) -> str | None:
    """Return a property's value as DescribeChangeSet returns it with IncludePropertyValues."""
    return value if value is None or isinstance(value, str) else json.dumps(value, default=str)

"""Parses a template, validates its structure, and sorts its resources."""

import json
from functools import cached_property
from typing import Any

import yaml

from trainium_local.cloudformation.errors import ValidationError
from trainium_local.cloudformation.values import depends_on, needed_by

Json = Any

_SECTIONS = frozenset(
    {
        "AWSTemplateFormatVersion",
        "Conditions",
        "Description",
        "Mappings",
        "Metadata",
        "Outputs",
        "Parameters",
        "Resources",
        "Rules",
    }
)
_MEMBERS = frozenset(
    {
        "Condition",
        "DeletionPolicy",
        "DependsOn",
        "Metadata",
        "Properties",
        "Type",
        "UpdatePolicy",
        "UpdateReplacePolicy",
    }
)
_UPDATE_POLICIES = frozenset({"AutoScalingScheduledAction"})
_POLICIES = ("Delete", "Retain", "RetainExceptOnCreate", "Snapshot")
_LIMITS = {"Mappings": 200, "Outputs": 200, "Parameters": 200, "Resources": 500}
"""https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html"""


class Template:
    """A template. Create it with `Template.parse`.

    Args:
        body: Text of the template.
        document: Its parsed content.
    """

    def __init__(self, body: str, document: dict[str, Any]) -> None:
        self.body, self.document = body, document
        self.resources: dict[str, dict[str, Any]] = document["Resources"]
        self.parameters: dict[str, Any] = document.get("Parameters") or {}
        self.conditions: dict[str, Any] = document.get("Conditions") or {}
        self.rules: dict[str, Any] = document.get("Rules") or {}
        self.mappings: dict[str, Any] = document.get("Mappings") or {}
        self.outputs: dict[str, Any] = document.get("Outputs") or {}

    @classmethod
    def parse(cls, body: str) -> "Template":
        """Parse a template.

        Raises:
            ValidationError: The text is invalid, or a section or member is not supported.
        """
        document = read(body)
        _check(document)
        return cls(body, document)

    @cached_property
    def order(self) -> list[str]:
        """Return the logical IDs of the resources, dependencies first.

        Raises:
            ValidationError: There is a cycle.
        """
        waiting = {name: self.needs(name) for name in self.resources}
        ordered: list[str] = []
        while waiting:
            ready = [name for name, needs in waiting.items() if not needs & waiting.keys()]
            if not ready:
                raise ValidationError(f"Circular dependency between resources: [{', '.join(sorted(waiting))}]")
            ordered += ready
            for name in ready:
                del waiting[name]
        return ordered

    def place(self, logical_id: str) -> int:
        """Return a resource's index in `order`, or -1 if the template does not contain it."""
        return self.order.index(logical_id) if logical_id in self.resources else -1

    def needs(self, logical_id: str) -> set[str]:
        """Return the logical IDs of a resource's dependencies. Those in DependsOn may not exist."""
        definition = self.resources[logical_id]
        return (needed_by(definition) & self.resources.keys()) | depends_on(definition)


def _check(document: Any) -> None:
    resources = document.get("Resources") if isinstance(document, dict) else None
    if not isinstance(resources, dict) or not resources:
        raise ValidationError("Template format error: At least one Resources member must be defined.")
    _refuse_unknown("template property or properties", document, _SECTIONS)
    for section, most in _LIMITS.items():
        count = len(document.get(section) or {})
        if count > most:
            raise ValidationError(
                f"Template format error: Number of {section.lower()}, {count}, is greater than maximum allowed, {most}"
            )
    for name, resource in resources.items():
        if not isinstance(resource, dict) or not isinstance(resource.get("Type"), str):
            raise ValidationError(f"Template format error: [/Resources/{name}] must be a map with a Type")
        _refuse_unknown(f"template resource property of {name}", resource, _MEMBERS)
        if not isinstance(resource.get("Properties", {}), dict):
            raise ValidationError(f"Template format error: [/Resources/{name}/Properties] must be a map")
        _refuse_unknown(f"update policy of {name}", resource.get("UpdatePolicy", {}), _UPDATE_POLICIES)
        for policy in ("DeletionPolicy", "UpdateReplacePolicy"):
            if resource.get(policy, "Delete") not in _POLICIES:
                raise ValidationError(f"Template format error: Unrecognized {policy} {resource[policy]} of {name}")


def _refuse_unknown(what: str, members: dict[str, Any], supported: frozenset[str]) -> None:
    unknown = ", ".join(sorted(members.keys() - supported))
    if unknown:
        raise ValidationError(f"Invalid {what} [{unknown}]. The embedded AWS supports [{', '.join(sorted(supported))}]")


class _Loader(yaml.SafeLoader):
    """Loads YAML. Dates and keys remain strings; aliases and short forms of functions are refused."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise ValidationError("Template error: YAML aliases are not allowed in CloudFormation templates")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:  # noqa: ARG002
        if not all(isinstance(key, yaml.ScalarNode) for key, _ in node.value):
            raise ValidationError("Template format error: YAML keys must be strings")
        return {key.value: self.construct_object(value, deep=True) for key, value in node.value}


def _refuse_tag(_: _Loader, node: yaml.Node) -> None:
    fix = "write the full form, such as Fn::Sub: or Ref:"
    raise ValidationError(f"Template format error: the embedded AWS does not support the tag {node.tag}: {fix}")


_Loader.yaml_constructors = {**yaml.SafeLoader.yaml_constructors, None: _refuse_tag}
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read(body: str) -> Json:
    """Parse JSON or YAML without checking the structure.

    Raises:
        ValidationError: The text is neither, or contains YAML that CloudFormation does not accept, or short forms of
            functions.
    """
    form = "JSON" if body.lstrip().startswith("{") else "YAML"
    try:
        return json.loads(body) if form == "JSON" else yaml.load(body, Loader=_Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValidationError(f"Template format error: {form} not well-formed. ({error})") from error

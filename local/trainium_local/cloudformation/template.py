"""A template: read, and its resources put into order."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import yaml

from trainium_local.cloudformation.errors import ValidationError
from trainium_local.cloudformation.references import depends_on, needed_by

Json = Any


@dataclass(frozen=True)
class Template:
    """A parsed template. Construct with `Template.parse`."""

    body: str
    document: dict[str, Any]

    @classmethod
    def parse(cls, body: str) -> Template:
        """Raises ValidationError for text that is no template."""
        try:
            document = json.loads(body)
        except ValueError:
            document = _parse_yaml(body)
        if not isinstance(document, dict) or not document.get("Resources"):
            raise ValidationError("Template format error: At least one Resources member must be defined.")
        return cls(body, document)

    @property
    def parameters(self) -> dict[str, Any]:
        return self.document.get("Parameters") or {}

    @property
    def conditions(self) -> dict[str, Any]:
        return self.document.get("Conditions") or {}

    @property
    def mappings(self) -> dict[str, Any]:
        return self.document.get("Mappings") or {}

    @property
    def resources(self) -> dict[str, dict[str, Any]]:
        return self.document["Resources"]

    @property
    def outputs(self) -> dict[str, Any]:
        return self.document.get("Outputs") or {}

    @cached_property
    def order(self) -> list[str]:
        """The resources' logical ids, each after all that it needs. Raises ValidationError for a circle."""
        waiting = {name: self.needs(name) for name in self.resources}
        ordered: list[str] = []
        while waiting:
            ready = [name for name, needs in waiting.items() if not needs & waiting.keys() - {name}]
            if not ready:
                raise ValidationError(f"Circular dependency between resources: [{', '.join(sorted(waiting))}]")
            ordered += ready
            for name in ready:
                del waiting[name]
        return ordered

    def needs(self, logical_id: str) -> set[str]:
        """The logical ids of the resources that a resource names; what its DependsOn names may be none."""
        resource = self.resources[logical_id]
        return (needed_by(resource) & self.resources.keys()) | depends_on(resource)


class _Loader(yaml.SafeLoader):
    """YAML with CloudFormation's short forms, in which a date stays text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _short_form(loader: Any, suffix: str, node: Any) -> Json:
    if isinstance(node, yaml.ScalarNode):
        value: Any = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True)
    return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _short_form)


def _parse_yaml(body: str) -> Json:
    try:
        return yaml.load(body, Loader=_Loader)
    except yaml.YAMLError as error:
        raise ValidationError(f"Template format error: {error}") from error

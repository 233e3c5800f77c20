"""A template: read, and its resources put into order."""

import json
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property, lru_cache
from graphlib import CycleError, TopologicalSorter
from types import SimpleNamespace
from typing import Any

import yaml
from cfnlint.template.transforms._language_extensions import language_extension

from trainium_local.cloudformation import template_structure
from trainium_local.cloudformation.errors import ValidationError
from trainium_local.cloudformation.values import depends_on, needed_by

Json = Any


class Template:
    """A template: `body` as it was given, `document` as it was read. Construct with `Template.parse`."""

    def __init__(self, body: str, document: dict[str, Any]) -> None:
        self.body, self.document = body, document
        self.transforms = _transforms(document)
        self.resources: dict[str, dict[str, Any]] = document["Resources"]
        self.parameters: dict[str, Any] = document.get("Parameters") or {}
        self.conditions: dict[str, Any] = document.get("Conditions") or {}
        self.rules: dict[str, Any] = document.get("Rules") or {}
        self.mappings: dict[str, Any] = document.get("Mappings") or {}
        self.outputs: dict[str, Any] = document.get("Outputs") or {}

    @classmethod
    def parse(cls, body: str) -> "Template":
        """Raises ValidationError for text that has not the structure of a template."""
        return cls(body, _checked(body))

    def with_parameters(self, values: Mapping[str, Any]) -> "Template":
        """The template as AWS::LanguageExtensions makes it for the values of its parameters."""
        if not self.transforms:
            return self
        document = _expanded(read(self.body), values)
        template_structure.check(document)
        return Template(self.body, document)

    @cached_property
    def order(self) -> list[str]:
        """The resources' logical ids, each after all that it needs. Raises ValidationError for a circle."""
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
        """Where `order` has a resource; -1 if the template has none of the name."""
        return self.order.index(logical_id) if logical_id in self.resources else -1

    def needs(self, logical_id: str) -> set[str]:
        """The logical ids of the resources that a resource names; what its DependsOn names may be none."""
        return self._needs[logical_id]

    @cached_property
    def _needs(self) -> dict[str, set[str]]:
        """With those that bear a name which the resource gives, such as a policy its bucket's, if that is no circle.

        On AWS the two have no order, and it is often the right one.
        """
        needs = {
            name: (needed_by(one) & self.resources.keys()) | depends_on(one) for name, one in self.resources.items()
        }
        properties = {name: one.get("Properties") or {} for name, one in self.resources.items()}
        bearers = {
            repr(given[own]): name
            for name, given in properties.items()
            if (own := f"{self.resources[name]['Type'].rpartition('::')[2]}Name") in given
        }
        for name, given in properties.items() if bearers else ():
            for bearer in {bearers.get(repr(value), name) for value in given.values()} - {name}:
                with suppress(CycleError):
                    TopologicalSorter(needs | {name: needs[name] | {bearer}}).prepare()
                    needs[name].add(bearer)
        return needs


@lru_cache(maxsize=32)  # a deployment asks several times for the same
def _checked(body: str) -> dict[str, Any]:
    document = read(body)
    if isinstance(document, dict) and _transforms(document):
        if _transforms(document) != ["AWS::LanguageExtensions"]:
            raise ValidationError(f"The embedded AWS does not expand the transforms {_transforms(document)}")
        document = _expanded(document, {})
    template_structure.check(document)
    return document


def _expanded(document: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The loops of AWS::LanguageExtensions written out, by cfn-lint; values of parameters go before their defaults."""
    declared = document.get("Parameters", {})
    if isinstance(declared, dict) and all(isinstance(one, dict) for one in declared.values()):
        texts = {name: ",".join(one) if isinstance(one, list) else str(one) for name, one in values.items()}
        given = {name: {**one, **({"Default": texts[name]} if name in texts else {})} for name, one in declared.items()}
        document = {**document, "Parameters": given}
    cfn = SimpleNamespace(template=document, regions=[values.get("AWS::Region", "us-east-1")], filename="")
    problems, expanded = language_extension(cfn)
    if expanded is None:
        raise ValidationError(f"Template error: {problems[0].message}")
    return {**expanded, **({"Parameters": declared} if declared else {})}


def _transforms(document: dict[str, Any]) -> list[Any]:
    named = document.get("Transform") or []
    return named if isinstance(named, list) else [named]


class _Loader(yaml.SafeLoader):
    """YAML with CloudFormation's short forms, in which dates and keys stay text, and without aliases."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise ValidationError("Template error: YAML aliases are not allowed in CloudFormation templates")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:  # noqa: ARG002
        if not all(isinstance(key, yaml.ScalarNode) for key, _ in node.value):
            raise ValidationError("Template format error: YAML keys must be strings")
        return {key.value: self.construct_object(value, deep=True) for key, value in node.value}


_TYPES = ("bool", "float", "int", "map", "null", "seq", "str")  # CloudFormation leaves out binary, omap, pairs, set, …
_Loader.yaml_constructors = {
    tag: constructor
    for tag, constructor in yaml.SafeLoader.yaml_constructors.items()
    if tag is None or tag.rpartition(":")[2] in _TYPES
}
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] in _TYPES]
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


def read(body: str) -> Json:
    """The JSON or YAML of a template, its structure unchecked. Raises ValidationError for text that is neither."""
    form = "JSON" if body.lstrip().startswith("{") else "YAML"
    try:
        return json.loads(body) if form == "JSON" else yaml.load(body, Loader=_Loader)
    except json.JSONDecodeError as error:
        line, column = error.lineno, error.colno
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    except (yaml.YAMLError, ValueError):
        line, column = 1, 1
    except RecursionError as error:
        raise ValidationError("Template format error: unsupported structure.") from error
    raise ValidationError(f"Template format error: {form} not well-formed. (line {line}, column {column})")

"""CloudFormation's registry schemas, from cfn-lint: the properties of each type and their allowed values."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from ipaddress import ip_network
from typing import Any

from cfnlint.jsonschema import CfnTemplateValidator
from cfnlint.jsonschema._filter import FunctionFilter
from cfnlint.schema import ResourceNotFoundError
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

#: Value of a property that is known only once another resource exists. CloudFormation uses the same text.
KNOWN_AFTER_APPLY = "{{changeSet:KNOWN_AFTER_APPLY}}"


@dataclass(frozen=True, kw_only=True)
class SchemaProblem:
    """A violation of a schema.

    Attributes:
        path: JSON pointer into the resource's properties.
        message: The message of cfn-lint.
    """

    path: str
    message: str

    def __str__(self) -> str:
        return f"#{self.path}: {self.message}"


class Schema:
    """The schema of one resource type."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    @property
    def properties(self) -> frozenset[str]:
        return frozenset(self.document["properties"])

    @property
    def attributes(self) -> list[str]:
        """The names that `Fn::GetAtt` accepts: the read-only properties, nested ones with dots."""
        return [".".join(path) for path in self._paths("readOnlyProperties") if "*" not in path]

    def create_only(self, old: dict[str, Any], new: dict[str, Any]) -> frozenset[str]:
        """The properties that require replacement because they, or parts of them, changed."""
        paths = self._paths("createOnlyProperties")
        return frozenset(path[0] for path in paths if _part(old, path) != _part(new, path))

    def conditionally_create_only(self, old: dict[str, Any], new: dict[str, Any]) -> frozenset[str]:
        """The changed properties that may require replacement."""
        paths = self._paths("conditionalCreateOnlyProperties")
        return frozenset(path[0] for path in paths if _part(old, path) != _part(new, path))

    @property
    def primary_identifier(self) -> list[str]:
        return [".".join(path) for path in self._paths("primaryIdentifier")]

    @property
    def tag_property(self) -> str | None:
        """The property that contains the tags, or None if the type does not support tags."""
        name = str(self.document.get("tagging", {}).get("tagProperty", "")).removeprefix("/properties/")
        return name if name in self.properties else ("Tags" if "Tags" in self.properties else None)

    @property
    def tags_are_a_map(self) -> bool:
        return "array" not in str(self._follow(self.document["properties"][self.tag_property]).get("type"))

    def problems(self, properties: dict[str, Any]) -> list[SchemaProblem]:
        """Return the errors that cfn-lint's validator finds in the properties. Unknown values are not checked."""
        errors = self._validator.iter_errors(properties)
        wrong = (error for error in errors if not error.unknown and not _has_host_bits(error))
        problems = [problem for error in wrong for problem in _problems(error, [])]
        return list(dict.fromkeys(problems))

    @cached_property
    def _validator(self) -> Any:
        return validator({**self.document, "type": "object"}, strict_types=False)  # CloudFormation converts scalars

    def _paths(self, keyword: str) -> list[list[str]]:
        pointers: list[str] = self.document.get(keyword) or []
        return [pointer.removeprefix("/properties/").split("/") for pointer in pointers]

    def _follow(self, schema: dict[str, Any]) -> dict[str, Any]:
        while schema.get("$ref", "").startswith("#/"):
            target: Any = self.document
            for step in schema["$ref"].removeprefix("#/").split("/"):
                target = target[step]
            schema = target
        return schema


def _has_host_bits(error: Any) -> bool:
    """Return whether the error is about host bits in a CIDR block, which EC2 clears (API reference, IpRange)."""
    if error.validator != "format" or not str(error.validator_value).endswith("-network"):
        return False
    try:
        return bool(ip_network(error.instance, strict=False))
    except ValueError:
        return False


def _part(properties: Any, path: list[str]) -> Any:
    """Return the value at a path, or the whole list where the path enters a list."""
    for step in path:
        if not isinstance(properties, dict):
            return properties
        properties = properties.get(step)
    return properties


def did_you_mean(name: str, known: Any) -> str:
    """Return the closest known name in parentheses, or an empty string."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {near[0]}?)" if near else ""


CUSTOM_RESOURCE = "AWS::CloudFormation::CustomResource"


def is_custom(resource_type: str) -> bool:
    """Return whether a function of the user provisions the type. Such types accept any properties."""
    return resource_type == CUSTOM_RESOURCE or resource_type.startswith("Custom::")


@cache
def find(resource_type: str, region: str) -> Schema | None:
    """Return the schema of a type in a region, or None for a custom resource or an unknown type."""
    if is_custom(resource_type):
        return None
    try:
        return Schema(PROVIDER_SCHEMA_MANAGER.get_resource_schema(region, resource_type).schema)
    except ResourceNotFoundError:
        return None


class _KnownValues(FunctionFilter):
    """Validates each value as it is: functions are already resolved."""

    def filter(self, validator: Any, instance: Any, schema: Any) -> Iterator[tuple[Any, dict[str, Any], Any]]:
        if isinstance(instance, str) and KNOWN_AFTER_APPLY in instance:
            schema = {"cfnUnresolved": True}
        elif isinstance(instance, list) and KNOWN_AFTER_APPLY in str(instance):
            # two unknown values look alike but may differ
            schema = {
                keyword: limit for keyword, limit in schema.items() if keyword not in ("uniqueItems", "uniqueKeys")
            }
        yield instance, schema, validator


_Validator: Any = CfnTemplateValidator({}).extend(function_filter=_KnownValues())


def validator(schema: dict[str, Any], *, strict_types: bool) -> Any:
    """Return cfn-lint's validator of a JSON schema for values without functions.

    Args:
        schema: The JSON schema.
        strict_types: Whether "1" is refused where a number is required.
    """
    instance = _Validator(schema=schema)
    return instance.evolve(context=instance.context.evolve(strict_types=strict_types, functions=[]))


def _problems(error: Any, parent: list[str]) -> Iterator[SchemaProblem]:
    """Yield a violation in cfn-lint's words, then its causes."""
    path = [*parent, *map(str, error.path)]
    yield SchemaProblem(path="".join(f"/{step}" for step in path), message=error.message)
    for cause in error.context:
        yield from _problems(cause, path)

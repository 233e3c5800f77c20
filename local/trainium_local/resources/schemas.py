"""CloudFormation's registry schemas, as cfn-lint ships them: the properties of a type and the values they take."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from cfnlint.schema import ResourceNotFoundError
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

#: Stands in a property whose value is known only once another resource exists. CloudFormation's own words.
KNOWN_AFTER_APPLY = "{{changeSet:KNOWN_AFTER_APPLY}}"

_JSON_NAMES = {dict: "JSONObject", list: "JSONArray", str: "String", bool: "Boolean", int: "Number", float: "Number"}


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing that a schema does not allow. `path` is a JSON pointer into the resource's properties."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"#{self.path}: {self.message}"


class Schema:
    """One resource type's schema."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    @property
    def properties(self) -> frozenset[str]:
        return frozenset(self._document["properties"])

    @property
    def attributes(self) -> list[str]:
        """The names `Fn::GetAtt` takes by right: the read-only properties, nested ones dotted."""
        return [".".join(path) for path in self._paths("readOnlyProperties") if "*" not in path]

    def definition(self, path: str) -> dict[str, Any]:
        """What the schema says of a property, nested ones dotted; nothing if it has none of the name."""
        schema: dict[str, Any] = self._document
        for step in path.split("."):
            schema = self._follow(self._follow(schema).get("properties", {}).get(step, {}))
        return schema

    def create_only(self, old: dict[str, Any], new: dict[str, Any]) -> frozenset[str]:
        """The properties whose change, or the change of a part of them, asks for a new resource."""
        paths = self._paths("createOnlyProperties")
        return frozenset(path[0] for path in paths if _part(old, path) != _part(new, path))

    @property
    def primary_identifier(self) -> list[str]:
        return [".".join(path) for path in self._paths("primaryIdentifier")]

    @property
    def tag_property(self) -> str | None:
        """The property that holds the tags, None if the type takes none."""
        name = str(self._document.get("tagging", {}).get("tagProperty", "")).removeprefix("/properties/")
        return name if name in self.properties else ("Tags" if "Tags" in self.properties else None)

    @property
    def tags_are_a_map(self) -> bool:
        return "array" not in str(self._follow(self._document["properties"][self.tag_property]).get("type"))

    def problems(self, properties: dict[str, Any]) -> list[Problem]:
        """All that is wrong with the properties, in their order. A value that is not known yet is not judged."""
        return list(self._check({**self._document, "type": "object"}, properties, ""))

    def _paths(self, keyword: str) -> list[list[str]]:
        pointers: list[str] = self._document.get(keyword) or []
        return [pointer.removeprefix("/properties/").split("/") for pointer in pointers]

    def _follow(self, schema: dict[str, Any]) -> dict[str, Any]:
        while schema.get("$ref", "").startswith("#/"):
            target: Any = self._document
            for step in schema["$ref"].removeprefix("#/").split("/"):
                target = target[step]
            schema = target
        return schema

    def _check(self, schema: dict[str, Any], value: Any, path: str) -> Iterator[Problem]:
        schema = self._follow(schema)
        if isinstance(value, str) and (KNOWN_AFTER_APPLY in value or "{{resolve:" in value):
            return
        if not _has_type(schema.get("type"), value):
            yield Problem(path=path, message=f"expected type: {_expected(schema['type'])}, found: {_found(value)}")
        elif isinstance(value, dict):
            yield from self._check_object(schema, value, path)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                yield from self._check(schema.get("items", {}), item, f"{path}/{index}")
        else:
            yield from _check_scalar(schema, value, path)

    def _check_object(self, schema: dict[str, Any], value: dict[str, Any], path: str) -> Iterator[Problem]:
        known: dict[str, Any] = schema.get("properties", {})
        for key in schema.get("required", ()):
            if key not in value:
                yield Problem(path=path, message=f"required key [{key}] not found")
        for message in _broken_relations(schema, value):
            yield Problem(path=path, message=message)
        for key, item in value.items():
            if key in known:
                yield from self._check(known[key], item, f"{path}/{key}")
            elif schema.get("additionalProperties") is False and not schema.get("patternProperties"):
                yield Problem(path=path, message=f"extraneous key [{key}] is not permitted{did_you_mean(key, known)}")


def _part(properties: Any, path: list[str]) -> Any:
    """What is at a path; all of it from where the path goes into a list."""
    for step in path:
        if not isinstance(properties, dict):
            return properties
        properties = properties.get(step)
    return properties


def did_you_mean(name: str, known: Any) -> str:
    """A parenthesis with the nearest of the known names, nothing if none is near."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {near[0]}?)" if near else ""


CUSTOM_RESOURCE = "AWS::CloudFormation::CustomResource"


def is_custom(resource_type: str) -> bool:
    """Whether a function of the user provisions the type, and takes what properties it likes."""
    return resource_type == CUSTOM_RESOURCE or resource_type.startswith("Custom::")


@cache
def find(resource_type: str, region: str) -> Schema | None:
    """The schema of a type in a region, None if the registry has none."""
    if is_custom(resource_type):
        return None
    try:
        return Schema(PROVIDER_SCHEMA_MANAGER.get_resource_schema(region, resource_type).schema)
    except ResourceNotFoundError:
        return None


def _has_type(expected: Any, value: Any) -> bool:
    """CloudFormation turns scalars into one another, but never a scalar into a list or an object."""
    names: list[str] = [expected] if isinstance(expected, str) else (expected or [])
    if not names:
        return True
    if isinstance(value, dict):
        return "object" in names
    if isinstance(value, list):
        return "array" in names
    text = str(value)
    return (
        "string" in names
        or ("boolean" in names and text.lower() in ("true", "false"))
        or (bool({"integer", "number"} & set(names)) and re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", text) is not None)
    )


def _expected(names: Any) -> str:
    readable = {"object": "JSONObject", "array": "JSONArray"}
    return " or ".join(readable.get(name, name.capitalize()) for name in ([names] if isinstance(names, str) else names))


def _found(value: Any) -> str:
    return _JSON_NAMES.get(type(value), type(value).__name__)


def _check_scalar(schema: dict[str, Any], value: Any, path: str) -> Iterator[Problem]:
    text = str(value)
    allowed = [str(choice) for choice in schema.get("enum", ())]
    if allowed and text not in allowed and text.lower() not in ("true", "false"):
        yield Problem(path=path, message=f"{text} is not a valid enum value, allowed: {', '.join(allowed)}")
    if isinstance(value, str) and "pattern" in schema and not _matches(schema["pattern"], value):
        yield Problem(path=path, message=f"{text} does not match pattern {schema['pattern']}")
    if isinstance(value, int | float) and not isinstance(value, bool):
        if value < schema.get("minimum", value):
            yield Problem(path=path, message=f"{text} is less than the minimum {schema['minimum']}")
        if value > schema.get("maximum", value):
            yield Problem(path=path, message=f"{text} is more than the maximum {schema['maximum']}")


def _matches(pattern: str, value: str) -> bool:
    try:
        return re.search(pattern, value) is not None
    except re.error:  # some patterns are in Java's dialect
        return True


def _broken_relations(schema: dict[str, Any], value: dict[str, Any]) -> Iterator[str]:
    for keyword, fits in (("requiredXor", lambda n: n == 1), ("requiredOr", lambda n: n >= 1)):  # pyright: ignore
        names = schema.get(keyword)
        if names and not fits(sum(name in value for name in names)):
            yield f"{'exactly' if keyword == 'requiredXor' else 'at least'} one of [{', '.join(names)}] is required"
    for key, others in schema.get("dependentRequired", {}).items():
        missing = [other for other in others if key in value and other not in value]
        if missing:
            yield f"[{key}] also needs [{', '.join(missing)}]"
    for key, others in schema.get("dependentExcluded", {}).items():
        for other in others:
            if key in value and other in value and key < other:
                yield f"[{key}] and [{other}] exclude each other"

"""A minimal valid instance of a type: what its schema and the creating call require, and what samples.toml adds."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tools.resource_types.models import Type, model

#: Properties that name something of another type, in the order in which they are tried.
_NEIGHBOURS = (
    (r"subnet(s|ids|id|identifiers|_ids)?$", "AWS::EC2::Subnet", "{id}"),
    (r"^subnetmappings$", "", ""),
    (r"(vpc)(id|identifier)?$", "AWS::EC2::VPC", "{id}"),
    (r"(securitygroup)(s|ids|id|identifiers)?$", "AWS::EC2::SecurityGroup", "{id}"),
    (r"rolearn$|^role$|executionrole$|servicerole$|^iamrole|noderole$|instancerole$", "AWS::IAM::Role", "{Arn}"),
    (r"(kmskey|encryptionkey)(id|arn)?$", "AWS::KMS::Key", "{Arn}"),
    (r"^topicarn$|snstopicarn$", "AWS::SNS::Topic", "{id}"),
    (r"^(s3)?bucket(name)?$", "AWS::S3::Bucket", "{id}"),
    (r"^loggroupname$", "AWS::Logs::LogGroup", "{id}"),
    (r"^routetableid$", "AWS::EC2::RouteTable", "{id}"),
    (r"^functionname$", "AWS::Lambda::Function", "{id}"),
)
_TEXTS = (
    "example", "Example", "example-1", "1", "10.0.0.0/24", "us-west-2a", "us-west-2", "example.com", "example.com.",
    "user@example.com", "https://example.com", "arn:aws:iam::123456789012:role/example", "123456789012",
    "arn:aws:sns:us-west-2:123456789012:example", "arn:aws:s3:::example", "s3://example/key", "/example", "1.0",
    "123456789012.dkr.ecr.us-west-2.amazonaws.com/example:latest", "rate(1 day)", "2030-01-01T00:00:00Z",
    "10.0.0.1", "i-0123456789abcdef0", "{}", "example-name-that-is-rather-long-but-still-valid",
)  # fmt: skip
_POLICY = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "*"}],
}
_ADDITIONS: dict[str, dict[str, Any]] = tomllib.loads((Path(__file__).parent / "samples.toml").read_text())

Neighbour = Callable[[str, str], str | None]


class Sampler:
    """Makes properties for one type. `neighbour(type, text)` gives e.g. the "{id}" or "{Arn}" of another resource."""

    def __init__(self, type_: Type, row: dict[str, Any], neighbour: Neighbour) -> None:
        self._type, self._row, self._neighbour = type_, row, neighbour

    def sample(self) -> dict[str, Any]:
        """The properties; KeyError when a required one has no value that the schema would allow."""
        additions = self._filled(_ADDITIONS.get(self._type.name, {}))
        names = {*self._type.required, *self._of_the_call()} - additions.keys()
        names -= set(self._type.read_only)
        shape = model(self._row["service"]).operation_model(self._row["create_call"]).input_shape
        made = {
            name: self._value(name, self._type.schema(name), _inside(shape, self._path(name))) for name in sorted(names)
        }
        return {**made, **additions}

    def _of_the_call(self) -> set[str]:
        shape = model(self._row["service"]).operation_model(self._row["create_call"]).input_shape
        needed = {member.lower() for member in (shape.required_members if shape is not None else ())}
        renamed: dict[str, Any] = self._row["renamed"]
        return {
            name
            for name in self._type.properties
            if renamed.get(name, name).split(".")[0].lower() in needed
            and "." not in renamed.get(name, name)
            and name != self._row["name_property"]
        }

    def _path(self, name: str) -> str:
        return self._row["renamed"].get(name, name)

    def _filled(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._filled(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._filled(item) for item in value]
        found = re.fullmatch(r"\$\{(AWS::[\w:]+?)(?:\.(\w+))?\}", value) if isinstance(value, str) else None
        return self._neighbour(found[1], f"{{{found[2] or 'id'}}}") if found else value

    def _value(self, name: str, schema: dict[str, Any], shape: Any, depth: int = 0) -> Any:
        schema = self._type.resolve(schema)
        for keyword in ("oneOf", "anyOf"):
            if keyword in schema and "properties" not in schema and "type" not in schema:
                schema = self._type.resolve(schema[keyword][0])
        kind = schema.get("type", "object" if "properties" in schema else "string")
        kind = kind[0] if isinstance(kind, list) else kind
        if depth > 6:
            raise KeyError(name)
        if kind == "object":
            wanted = list(schema.get("required", ()))
            called = {one.lower() for one in getattr(shape, "required_members", ())}
            wanted += [one for one in schema.get("properties", {}) if one.lower() in called and one not in wanted]
            for choice in (schema.get("oneOf") or schema.get("anyOf") or [])[:1]:
                wanted += [one for one in choice.get("required", ()) if one not in wanted]
            if name.lower().endswith(("policydocument", "policy")) and not wanted:
                return _POLICY
            known = schema.get("properties", {})
            return {one: self._value(one, known[one], _inside(shape, one), depth + 1) for one in wanted if one in known}
        if kind == "array":
            count = max(1, int(schema.get("minItems", 1)))
            item = self._value(name, schema.get("items", {}), getattr(shape, "member", None), depth + 1)
            return [item] if count == 1 else [item] * count
        return self._scalar(name, kind, schema, shape)

    def _scalar(self, name: str, kind: str, schema: dict[str, Any], shape: Any) -> Any:
        if kind == "boolean":
            return bool(schema.get("default", False))
        if kind in ("integer", "number"):
            return schema.get("default", max(1, schema.get("minimum", 1)))
        if getattr(shape, "type_name", "") in ("integer", "long", "float", "double"):
            return "80"
        default = [schema["default"]] if schema.get("default") else None
        for choices in (schema.get("enum"), default, getattr(shape, "enum", None)):
            if choices:
                return choices[0]
        for pattern, neighbour, text in _NEIGHBOURS:
            if neighbour and re.search(pattern, name, re.IGNORECASE) and neighbour != self._type.name:
                found = self._neighbour(neighbour, text)
                if found is not None:
                    return found
        found = self._sibling(name)
        if found is not None:
            return found
        texts = [str(one) for one in schema.get("examples", ())] + list(_TEXTS)
        if "json" in name.lower() or name.lower().endswith(("document", "policy", "body")):
            texts.insert(0, json.dumps(_POLICY))
        for text in texts:
            if schema.get("minLength", 0) <= len(text) <= schema.get("maxLength", 9999) and _matches(schema, text):
                return text
        raise KeyError(name)

    def _sibling(self, name: str) -> str | None:
        """What names a resource of the same service: RestApiId, ClusterName, LoadBalancerArn."""
        found = re.fullmatch(r"(\w+?)(Id|Arn|Name|Identifier|Ref)?", name)
        service = self._type.name.rsplit("::", 1)[0]
        if not found or found[1] in ("", self._type.kind):
            return None
        text = "{id}" if found[2] in (None, "Identifier", "Ref") else f"{{{found[2]}}}"
        return self._neighbour(f"{service}::{found[1]}", text)


def _inside(shape: Any, path: str) -> Any:
    """The part of a call's input at a path; None if there is none."""
    for step in path.split("."):
        members = getattr(shape, "members", {})
        shape = next((inner for name, inner in members.items() if name.lower() == step.lower()), None)
    return shape


def _matches(schema: dict[str, Any], text: str) -> bool:
    try:
        return "pattern" not in schema or re.search(schema["pattern"], text) is not None
    except re.error:
        return True

"""Translates requests into IAM's terms: actions, resource ARNs, and values of condition keys.

cfn-lint includes the resource types of each action and their ARN formats, from the Service Authorization Reference.
These data do not state which of several types a request must name. Here, a request needs permission for each resource
that it names; if it names none, permission for any of the types is sufficient.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Formatter
from typing import Any

from cfnlint.helpers import load_resource
from moto.autoscaling.models import autoscaling_backends
from moto.ec2 import ec2_backends
from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE
from moto.iam.models import iam_backends

from trainium_local.permissions.policies import Access, Context

_FACTS: dict[str, Any] = tomllib.loads((files("trainium_local.permissions") / "actions.toml").read_text())

Values = list[tuple[str, str]]
_SUFFIX = re.compile(r"(identifier|arn|id|name|url)?s?$")
_OF_AWS = "/aws/service/"  # AWS's public parameters have no account (Systems Manager User Guide, public parameters)
_OF_ANY_TYPE = {"", "resource"}  # parameters such as Name, Id, ResourceArn


@dataclass(frozen=True, kw_only=True)
class AuthorizationRequest:
    """An API call.

    Attributes:
        signing_name: Name of the service in the signature.
        operation: Name of the operation.
        parameters: Values of the parameters.
        members: Names of the parameters that the operation accepts.
        region: The region of the request.
        account: The account of the request.
    """

    signing_name: str
    operation: str
    parameters: Mapping[str, Any]
    members: frozenset[str]
    region: str
    account: str

    @property
    def prefix(self) -> str:
        """Return the prefix of the service's actions."""
        return _FACTS["prefixes"].get(self.signing_name, self.signing_name)


def accesses(request: AuthorizationRequest, caller: Mapping[str, list[str]]) -> Iterator[list[Access]]:
    """Yield the required permissions as lists; one entry of each list is sufficient.

    Args:
        request: The request.
        caller: Values of condition keys that describe the caller.
    """
    values = list(_values(request.parameters))

    def access(action: str, arn: str, **more: str) -> Access:
        keys = {key.replace("_", ":"): [value] for key, value in more.items()}
        return Access(action=action, resource=arn, context=_context(request, arn, values, {**caller, **keys}))

    name = _FACTS["actions"].get(request.prefix, {}).get(request.operation, request.operation)
    versioned = request.prefix == "s3" and name in ("GetObject", "DeleteObject") and "VersionId" in dict(values)
    action = f"{request.prefix}:{name}{'Version' * versioned}"
    named, unnamed = _arns(request, name, values)
    yield from ([access(action, arn)] for arn in named)
    if not named:
        yield [access(action, arn) for arn in unnamed]
    if source := dict(values).get("CopySource"):
        yield [access("s3:GetObject", f"arn:aws:s3:::{source.lstrip('/').partition('?')[0]}")]
    if request.prefix == "ec2" and request.operation != "CreateLaunchTemplate":
        for specification in request.parameters.get("TagSpecifications") or ():
            arn = f"arn:aws:ec2:{request.region}:{request.account}:{specification.get('ResourceType')}/*"
            yield [access("ec2:CreateTags", arn, ec2_createaction=request.operation)]
    for role, service in _passed_roles(request, values):
        yield [access("iam:PassRole", role, iam_passedtoservice=service)]


def _arns(request: AuthorizationRequest, action: str, values: Values) -> tuple[list[str], list[str]]:
    """Return the ARNs that the request names, and for each possible resource type an ARN with only the type."""
    data = reference().get(request.prefix, {"Actions": {}})
    if action.lower() not in data["Actions"]:
        return [], ["*"]
    types: list[str] = data["Actions"][action.lower()].get("Resources", [])
    named, unnamed = list[str](), list[str]()
    for kind in types:
        for form in data["Resources"].get(kind.lower(), {}).get("ARNFormats", []):
            start = form.removesuffix(".*").replace("${Partition}", "aws").replace("${Region}", request.region)
            start = start.replace("${Account}", request.account)
            unnamed.append(start + re.sub(r"\{\w+\}", "*", _arn_end(request, kind) or "*"))
            for end in _ends(request, kind, values, alone=len(types) == 1):
                if end.startswith("arn:"):
                    named += [end] if end.startswith(start) else []
                else:
                    arn = start + (end.lstrip("/") if start.endswith("/") else end)
                    named.append(arn.replace(f":{request.account}:", "::") if end.startswith(_OF_AWS) else arn)
    return list(dict.fromkeys(named)), unnamed or [""]


def _arn_end(request: AuthorizationRequest, kind: str) -> str | None:
    return _FACTS["ends"].get(request.prefix, {}).get(kind)


def _ends(request: AuthorizationRequest, kind: str, values: Values, *, alone: bool) -> Iterator[str]:
    """Yield the ends of the ARNs of this type that the request names. Parts that it does not name are wildcards."""
    form = _arn_end(request, kind)
    lowered = {key.lower(): value for key, value in values}
    if lowered.get("resourcetype", "").lower() == kind.lower() and "resourceid" in lowered:  # tags in Systems Manager
        yield lowered["resourceid"]
        return
    if form:
        main = next(reversed([name for _, name, _, _ in Formatter().parse(form) if name]))
        for value in [value for key, value in values if key.lower().removesuffix("s") == main]:
            members = defaultdict[str, str](lambda: "*", {**lowered, main: value})
            yield value if value.startswith("arn:") else form.format_map(members)
        return
    for key, value in values:
        stem = _SUFFIX.sub("", key.lower())
        if value.startswith("arn:"):
            yield value
        elif request.prefix == "ec2":
            # Such as i-0123456789abcdef0: the ID contains the type.
            if EC2_PREFIX_TO_RESOURCE.get(value.rpartition("-")[0]) == kind:
                yield value
        elif stem == re.sub(r"\W", "", kind.lower()) or (alone and stem in _OF_ANY_TYPE):
            yield value.rpartition("/")[2] if key.lower().endswith("url") else value


def _passed_roles(request: AuthorizationRequest, values: Values) -> Iterator[tuple[str, str]]:
    """Yield the roles that the request passes to a service, and the service's name."""
    if request.prefix == "sts":
        return
    service = _FACTS["passed_to"].get(request.prefix, request.prefix)
    if request.prefix != "iam":
        for key, value in values:
            if key.lower().endswith(("role", "rolearn")) and ":role/" in value:
                yield value, f"{service}.amazonaws.com"
    profile = request.parameters.get("IamInstanceProfile")
    if request.operation == "AddRoleToInstanceProfile":
        yield f"arn:aws:iam::{request.account}:role/{request.parameters['RoleName']}", "ec2.amazonaws.com"
    elif profile:
        names = {str(value).rpartition("/")[2] for _, value in _values({"Name": profile})}
        backends: Any = iam_backends
        for instance_profile in list(backends[request.account]["aws"].instance_profiles.values()):
            if instance_profile.name in names:
                yield from ((role.arn, "ec2.amazonaws.com") for role in instance_profile.roles)


def _context(request: AuthorizationRequest, arn: str, values: Values, keys: Mapping[str, list[str]]) -> Context:
    tags = dict(_tags(request.parameters))

    def find(key: str) -> list[str] | None:
        service, _, name = key.partition(":")
        if key in keys:
            return keys[key]
        if key == "aws:requestedregion":
            return [request.region]
        if key == "aws:securetransport":
            return ["true"]  # plain HTTP represents HTTPS here
        if key == "aws:tagkeys":
            return list(tags) or [value for key, value in values if key == "TagKeys"]
        if name.startswith("requesttag/"):
            return _parameter_value(tags, name)
        if name.startswith("resourcetag/"):
            on_resource = _resource_tags(arn)
            return None if on_resource is None else _parameter_value(on_resource, name)
        if service != request.prefix or name not in {member.lower() for member in request.members}:
            return None
        return [value for key, value in values if key.lower() == name]

    return find


def _parameter_value(tags: Mapping[str, str], key: str) -> list[str]:
    tag = key.partition("/")[2]
    return [value for name, value in tags.items() if name.lower() == tag]


def _tags(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield the tags in a request: a list of pairs, a map, or TagSpecifications."""
    if isinstance(value, list):
        for item in value:
            if "Key" in item or "key" in item or "TagKey" in item:
                pair = {name.lower().removeprefix("tag"): content for name, content in item.items()}
                yield pair["key"], str(pair.get("value", ""))
            else:
                yield from _tags(item.get("Tags") or [], "Tags")
    elif isinstance(value, Mapping) and key.lower() == "tags":
        yield from ((name, str(content)) for name, content in value.items())
    elif isinstance(value, Mapping):
        for name, content in value.items():
            if name.lower() in ("tags", "tagspecifications"):
                yield from _tags(content, name)


def _resource_tags(arn: str) -> dict[str, str] | None:
    """Return the tags of an EC2 resource or an Auto Scaling group. None if unknown."""
    _, _, service, region, account, *_ = f"{arn}:::::".split(":")
    name = arn.rpartition("/")[2]
    backends: Any = ec2_backends if service == "ec2" else autoscaling_backends
    if service not in ("ec2", "autoscaling") or not account or "*" in name:
        return None
    if service == "ec2":
        return dict(backends[account][region].tags.get(name, {}))
    group = backends[account][region].autoscaling_groups.get(name)
    return dict(_tags(group.tags)) if group else None


def _values(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield every scalar in the parameters, with the parameter's name."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _values(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from _values(item, key)
    elif isinstance(value, str | int | float):
        yield key, str(value)


@cache
def reference() -> dict[str, Any]:
    """Return the Service Authorization Reference's data about the actions of each service."""
    return load_resource("cfnlint.data.AdditionalSpecs", "Policies.json")

"""Resolves template parameters from given values, defaults and SSM parameter names."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import regex
from botocore.exceptions import ClientError
from cfnlint.helpers import ensure_list

from trainium_local.cloudformation.errors import ValidationError
from trainium_local.cloudformation.template import Template
from trainium_local.cloudformation.values import as_text
from trainium_local.resources import api

_FROM_PARAMETER_STORE = "AWS::SSM::Parameter::Value<"


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A parameter of a deployment.

    Attributes:
        text: The text in the request or template. For an SSM parameter, its name.
        value: The result of `Ref`.
        secret: Whether the template declares NoEcho.
        from_parameter_store: Whether `text` is the name of an SSM parameter.
    """

    text: str
    value: Any
    secret: bool
    from_parameter_store: bool


def resolve(template: Template, values: Mapping[str, str], region: str) -> dict[str, Parameter]:
    """Resolve the parameters of a template, with the values from a request.

    Raises:
        ValidationError: A value is missing or invalid, the template does not declare a parameter, or an SSM parameter
            does not exist or has another type.
    """
    undeclared = sorted(values.keys() - template.parameters.keys())
    if undeclared:
        raise ValidationError(f"Parameters: [{', '.join(undeclared)}] do not exist in the template")
    effective: dict[str, str | None] = {
        name: values.get(name, declaration.get("Default")) for name, declaration in template.parameters.items()
    }
    missing = [name for name, value in effective.items() if value is None]
    if missing:
        raise ValidationError(f"Parameters: [{', '.join(missing)}] must have values")
    texts = {name: as_text(value) for name, value in effective.items()}
    for name, declaration in template.parameters.items():
        _check_constraints(name, texts[name], declaration)
    for name, declaration in template.parameters.items():
        _check_exists(name, _value(texts[name], declaration["Type"]), declaration["Type"], region)
    stored = _fetch(
        {
            texts[name]: "List" in declaration["Type"]
            for name, declaration in template.parameters.items()
            if _is_stored(declaration)
        },
        region,
    )
    return {
        name: Parameter(
            text=texts[name],
            value=_value(stored.get(texts[name], texts[name]), declaration["Type"]),
            secret=str(declaration.get("NoEcho")).lower() == "true",
            from_parameter_store=_is_stored(declaration),
        )
        for name, declaration in template.parameters.items()
    }


def _is_stored(declaration: Mapping[str, Any]) -> bool:
    return declaration["Type"].startswith(_FROM_PARAMETER_STORE)


def _check_constraints(name: str, text: str, declaration: Mapping[str, Any]) -> None:
    for value in ensure_list(text if _is_stored(declaration) else _value(text, declaration["Type"])):
        is_number = _NUMBER.fullmatch(value) is not None
        if "Number" in declaration["Type"] and not is_number:
            raise ValidationError(f"Parameter '{name}' must be a number.")
        for constraint, (holds, words) in _CONSTRAINTS.items():
            limit = declaration.get(constraint)
            if limit is None or (constraint.endswith("Value") and not is_number) or holds(value, limit):
                continue
            if "ConstraintDescription" in declaration:
                words = f"Parameter {name} failed to satisfy constraint: {declaration['ConstraintDescription']}"
                raise ValidationError(words)
            limit = ", ".join(map(as_text, limit)) if isinstance(limit, list) else limit
            raise ValidationError(f"Parameter '{name}' {words.format(limit)}")


#: AWS-specific type -> the call of EC2 that reads a resource, and its argument with the values.
_EXISTING = {
    "AWS::EC2::AvailabilityZone::Name": ("DescribeAvailabilityZones", "ZoneNames"),
    "AWS::EC2::Image::Id": ("DescribeImages", "ImageIds"),
    "AWS::EC2::Instance::Id": ("DescribeInstances", "InstanceIds"),
    "AWS::EC2::KeyPair::KeyName": ("DescribeKeyPairs", "KeyNames"),
    "AWS::EC2::SecurityGroup::GroupName": ("DescribeSecurityGroups", "GroupNames"),
    "AWS::EC2::SecurityGroup::Id": ("DescribeSecurityGroups", "GroupIds"),
    "AWS::EC2::Subnet::Id": ("DescribeSubnets", "SubnetIds"),
    "AWS::EC2::VPC::Id": ("DescribeVpcs", "VpcIds"),
    "AWS::EC2::Volume::Id": ("DescribeVolumes", "VolumeIds"),
}


def _check_exists(name: str, value: Any, declared_type: str, region: str) -> None:
    """Raise ValidationError if a value of an AWS-specific type does not exist."""
    operation, argument = _EXISTING.get(declared_type.removeprefix("List<").removesuffix(">"), ("", ""))
    for item in ensure_list(value) if operation else ():
        try:
            answer = api.call("ec2", operation, region, {argument: [item]})
            found = any(isinstance(part, list) and part for part in answer.values())
        except ClientError as error:
            if error.response["Error"]["Code"] == "UnauthorizedOperation":
                raise ValidationError(error.response["Error"]["Message"]) from error
            found = False
        if not found:
            raise ValidationError(
                f"Parameter validation failed: parameter value {item} for parameter name {name} does not exist"
            )


def _matches(value: str, pattern: str) -> bool:
    try:
        return regex.fullmatch(str(pattern), value) is not None
    except regex.error as error:
        raise ValidationError(f"Template format error: AllowedPattern {pattern} is not a valid pattern") from error


_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?")
#: Constraint -> check of a value, and AWS's message. MinValue and MaxValue apply to numbers only.
_CONSTRAINTS: dict[str, tuple[Callable[[str, Any], bool], str]] = {
    "AllowedValues": (lambda value, limit: value in map(as_text, limit), "must be one of AllowedValues: {}"),
    "AllowedPattern": (_matches, "must match pattern {}"),
    "MinLength": (lambda value, limit: len(value) >= int(limit), "must contain at least {} characters"),
    "MaxLength": (lambda value, limit: len(value) <= int(limit), "must contain at most {} characters"),
    "MinValue": (lambda value, limit: float(value) >= float(limit), "must be a number not less than {}"),
    "MaxValue": (lambda value, limit: float(value) <= float(limit), "must be a number not greater than {}"),
}


def _fetch(listed: Mapping[str, bool], region: str) -> dict[str, str]:
    """Return the values of SSM parameters.

    Args:
        listed: Whether the template's type is a list, by name of the SSM parameter.
        region: The region of the parameters.
    """
    parameters: dict[str, dict[str, Any]] = {}
    for name in sorted(listed):
        try:
            answer = api.call("ssm", "GetParameters", region, {"Names": [name]})
        except ClientError as error:
            raise ValidationError(error.response["Error"]["Message"]) from error
        for parameter in answer["Parameters"]:
            parameters[name] = parameter
    absent = sorted(listed.keys() - parameters.keys())
    if absent:
        raise ValidationError(f"Unable to fetch parameters [{','.join(absent)}] from parameter store for this account.")
    wrong = [
        name
        for name, parameter in parameters.items()
        if parameter["Type"] != ("StringList" if listed[name] else "String")
    ]
    if wrong:
        raise ValidationError(
            f"Types for SSM parameters [{','.join(wrong)}] defined in CFN template and SSM are incompatible"
        )
    return {name: parameter["Value"] for name, parameter in parameters.items()}


def _value(text: str, declared_type: str) -> Any:
    return [item.strip() for item in text.split(",")] if "List" in declared_type else text

"""Resolves the intrinsic functions and conditions in a template's values."""

import base64
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import boto3

from trainium_local.cloudformation.errors import ValidationError
from trainium_local.cloudformation.template import Template
from trainium_local.cloudformation.values import as_text
from trainium_local.resources import api
from trainium_local.resources.schemas import KNOWN_AFTER_APPLY

_NO_VALUE = object()
_SUBSTITUTION = re.compile(r"\$\{(!?)([^}]+)\}")


class Lookup:
    """The resources and other stacks that functions refer to. In this base class, all values are unknown.

    Subclasses raise ValidationError for a reference that does not exist.
    """

    def ref(self, logical_id: str) -> Any:  # noqa: ARG002
        return KNOWN_AFTER_APPLY

    def attribute(self, logical_id: str, name: str) -> Any:  # noqa: ARG002
        return self.ref(logical_id)

    def export(self, name: str) -> str:  # noqa: ARG002
        return KNOWN_AFTER_APPLY


@dataclass(kw_only=True)
class IntrinsicFunctions:
    """Resolves the values of one template for one stack.

    Attributes:
        template: The template.
        parameters: Template parameters and pseudo parameters.
        lookup: Finds resources and exports.
        region: The region of the stack.
    """

    template: Template
    parameters: Mapping[str, Any]
    lookup: Lookup
    region: str
    _conditions: dict[str, bool] = field(default_factory=dict[str, bool])

    def resolve(self, value: Any) -> Any:
        """Return a value with all functions applied.

        Raises:
            ValidationError: CloudFormation would refuse the value.
        """
        resolved = self._resolve(value)
        return None if resolved is _NO_VALUE else resolved

    def condition(self, name: str | None) -> bool:
        """Return whether the named condition is true; True without a name. Raises ValidationError if it is unknown."""
        if name is None:
            return True
        if name not in self.template.conditions:
            raise ValidationError(f"Template format error: Unresolved condition {name}")
        if name not in self._conditions:
            self._conditions[name] = bool(self._resolve(self.template.conditions[name]))
        return self._conditions[name]

    def _resolve(self, value: Any) -> Any:
        if isinstance(value, list):
            items = [self._resolve(item) for item in value]
            return [item for item in items if item is not _NO_VALUE]
        if isinstance(value, dict):
            if len(value) == 1:
                ((name, argument),) = value.items()
                if name in _LAZY:
                    return _LAZY[name](self, argument)
                if name in _EAGER:
                    return self._apply(name, self._resolve(argument))
            items = {key: self._resolve(item) for key, item in value.items()}
            return {key: item for key, item in items.items() if item is not _NO_VALUE}
        return value

    def _apply(self, name: str, argument: Any) -> Any:
        if KNOWN_AFTER_APPLY in json.dumps(argument, default=str):
            return KNOWN_AFTER_APPLY
        try:
            return _EAGER[name](self, argument)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise ValidationError(f"Template error: {name} cannot be applied to {argument}: {error}") from error

    def ref(self, name: str) -> Any:
        if name == "AWS::NoValue":
            return _NO_VALUE
        return self.parameters[name] if name in self.parameters else self.lookup.ref(name)

    def attribute(self, argument: Any) -> Any:
        name, _, attribute = argument.partition(".") if isinstance(argument, str) else (argument[0], "", argument[1])
        return self.lookup.attribute(name, self._resolve(attribute))

    def choose(self, argument: list[Any]) -> Any:
        condition, then, otherwise = argument
        return self._resolve(then if self.condition(condition) else otherwise)

    def condition_or_property(self, argument: Any) -> Any:
        """Return the value of a named condition. A `Condition` of an IAM policy, which is not a name, remains."""
        return self.condition(argument) if isinstance(argument, str) else {"Condition": self._resolve(argument)}

    def substitute(self, argument: Any) -> str:
        text, variables = (argument, {}) if isinstance(argument, str) else (argument[0], self._resolve(argument[1]))

        def replace(match: re.Match[str]) -> str:
            literal, expression = match.group(1), match.group(2).strip()
            if literal:
                return f"${{{match.group(2)}}}"
            if expression in variables:
                return as_text(variables[expression])
            return as_text(self.attribute(expression) if "." in expression else self.ref(expression))

        return _SUBSTITUTION.sub(replace, text)

    def zones(self, region: Any) -> list[str]:
        if not isinstance(region, str | None):
            raise ValidationError("Template error: every Fn::GetAZs object must have a String-typed value.")
        if region and region not in boto3.Session().get_available_regions("ec2"):
            return []  # the behaviour of CloudFormation
        zones = api.call("ec2", "DescribeAvailabilityZones", region or self.region, {})["AvailabilityZones"]
        return [zone["ZoneName"] for zone in zones]

    def find_in_map(self, argument: list[Any]) -> Any:
        value: Any = self.template.mappings
        for key in map(as_text, argument):
            if key not in value:
                raise ValidationError(f"Template error: Unable to get mapping for {'::'.join(map(str, argument))}")
            value = value[key]
        return value

    def select(self, argument: list[Any]) -> Any:
        index, items = argument
        if not isinstance(items, list) or not str(index).isdecimal():
            raise ValidationError(
                "Template error: Fn::Select requires a list argument with two elements: an integer index and a list"
            )
        if int(index) >= len(items):
            raise ValidationError(f"Template error: Fn::Select cannot select nonexistent value at index {index}")
        return items[int(index)]


#: Functions that resolve their argument themselves.
_LAZY: dict[str, Callable[[IntrinsicFunctions, Any], Any]] = {
    "Ref": IntrinsicFunctions.ref,
    "Fn::GetAtt": IntrinsicFunctions.attribute,
    "Fn::If": IntrinsicFunctions.choose,
    "Fn::Sub": IntrinsicFunctions.substitute,
    "Condition": IntrinsicFunctions.condition_or_property,
}

#: Functions that receive a resolved argument.
_EAGER: dict[str, Callable[[IntrinsicFunctions, Any], Any]] = {
    "Fn::And": lambda _, argument: all(argument),
    "Fn::Base64": lambda _, argument: base64.b64encode(as_text(argument).encode()).decode(),
    "Fn::Contains": lambda _, argument: as_text(argument[1]) in map(as_text, argument[0]),
    "Fn::Equals": lambda _, argument: as_text(argument[0]) == as_text(argument[1]),
    "Fn::FindInMap": IntrinsicFunctions.find_in_map,
    "Fn::GetAZs": IntrinsicFunctions.zones,
    "Fn::ImportValue": lambda resolver, argument: resolver.lookup.export(argument),
    "Fn::Join": lambda _, argument: argument[0].join(as_text(item) for item in argument[1]),
    "Fn::Not": lambda _, argument: not argument[0],
    "Fn::Or": lambda _, argument: any(argument),
    "Fn::Select": IntrinsicFunctions.select,
    "Fn::Split": lambda _, argument: argument[1].split(argument[0]),
}

FUNCTIONS = _LAZY.keys() | _EAGER.keys()
"""All functions that the embedded AWS supports."""

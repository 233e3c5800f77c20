"""Template parameters: given values, defaults, and names of SSM parameters become values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from trainium_local.cloudformation.errors import ValidationError
from trainium_local.cloudformation.template import Template
from trainium_local.resources import api, schemas

_FROM_PARAMETER_STORE = "AWS::SSM::Parameter::Value<"


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One parameter: `given` as text, `value` as `Ref` gives it."""

    given: str
    value: Any
    secret: bool
    from_parameter_store: bool


def resolve(template: Template, given: Mapping[str, str], region: str) -> dict[str, Parameter]:
    """Raises ValidationError, in CloudFormation's words, for values that do not fit the declarations."""
    strange = sorted(given.keys() - template.parameters.keys())
    if strange:
        raise ValidationError(f"Parameters: [{', '.join(strange)}] do not exist in the template")
    texts: dict[str, str | None] = {
        name: given.get(name, declaration.get("Default")) for name, declaration in template.parameters.items()
    }
    missing = [name for name, text in texts.items() if text is None]
    if missing:
        raise ValidationError(f"Parameters: [{', '.join(missing)}] must have values")
    for name, declaration in template.parameters.items():
        _check_constraints(name, str(texts[name]), declaration)
    stored = _fetch(
        {str(texts[name]) for name, declaration in template.parameters.items() if _is_stored(declaration)}, region
    )
    return {
        name: Parameter(
            given=str(texts[name]),
            value=_value(stored.get(str(texts[name]), str(texts[name])), declaration["Type"]),
            secret=str(declaration.get("NoEcho")).lower() == "true",
            from_parameter_store=_is_stored(declaration),
        )
        for name, declaration in template.parameters.items()
    }


def _is_stored(declaration: Mapping[str, Any]) -> bool:
    return declaration["Type"].startswith(_FROM_PARAMETER_STORE)


def _check_constraints(name: str, text: str, declaration: Mapping[str, Any]) -> None:
    allowed = [str(choice) for choice in declaration.get("AllowedValues", ())]
    pattern = declaration.get("AllowedPattern")
    if allowed and text not in allowed:
        hint = schemas.did_you_mean(text, allowed)
        problem = f"must be one of AllowedValues: {', '.join(allowed)}; got '{text}'{hint}"
    elif pattern and re.fullmatch(pattern, text) is None:
        problem = declaration.get("ConstraintDescription") or f"must match pattern {pattern}, got '{text}'"
    elif declaration["Type"] == "Number" and re.fullmatch(r"-?\d+(\.\d+)?", text) is None:
        problem = f"must be a number, got '{text}'"
    else:
        broken = next((limit for limit in _LIMITS if limit in declaration and _breaks(limit, text, declaration)), None)
        problem = broken and f"must keep to {broken} {declaration[broken]}, got '{text}'"
    if problem:
        raise ValidationError(f"Parameter '{name}' {problem}")


_LIMITS = ("MinLength", "MaxLength", "MinValue", "MaxValue")


def _breaks(limit: str, text: str, declaration: Mapping[str, Any]) -> bool:
    size, bound = len(text) if limit.endswith("Length") else float(text), float(declaration[limit])
    return size < bound if limit.startswith("Min") else size > bound


def _fetch(names: set[str], region: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in sorted(names):
        try:
            found[name] = api.call("ssm", "GetParameter", region, {"Name": name})["Parameter"]["Value"]
        except ClientError as error:
            if not api.says_gone(error):
                raise
    absent = sorted(names - found.keys())
    if absent:
        raise ValidationError(f"Unable to fetch parameters [{','.join(absent)}] from parameter store for this account.")
    return found


def _value(text: str, declared_type: str) -> Any:
    is_list = "List<" in declared_type or declared_type == "CommaDelimitedList"
    return [item.strip() for item in text.split(",")] if is_list else text

"""Enums, patterns and limits of the API models. botocore validates only some of the limits."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from trainium_local.services.errors import Refused

# EC2 documents patterns but does not enforce them; moto validates S3's values.
_ENUMS_ONLY = frozenset({"ec2"})
_UNCHECKED = frozenset({"s3", "cloudformation"})
_CODES = {"query": "ValidationError", "ec2": "InvalidParameterValue"}


def check(service: Any, shape: Any, arguments: Any) -> None:
    """Check arguments against their shape.

    Args:
        service: botocore's ServiceModel.
        shape: botocore's shape of the arguments.
        arguments: The arguments.

    Raises:
        Refused: The first violation.
    """
    name = service.service_name
    for path, value, constraint in _violations(shape, arguments) if name not in _UNCHECKED else ():
        message = f"1 validation error detected: Value '{value}' at '{path}' failed to satisfy constraint: {constraint}"
        if name in _ENUMS_ONLY:
            if "enum" not in constraint:
                continue
            message = f"Value ({value}) for parameter {path} is invalid. {constraint}"
        raise Refused(_CODES.get(service.protocol, "ValidationException"), message)


def _violations(shape: Any, value: Any, path: str = "") -> Iterator[tuple[str, Any, str]]:
    yield from ((path, value, f"Member must {constraint}") for constraint in _broken(shape, value))
    if shape.type_name == "structure":
        for member, part in value.items():
            inner = member[:1].lower() + member[1:]
            yield from _violations(shape.members[member], part, f"{path}.{inner}" if path else inner)
    elif shape.type_name == "list":
        for number, part in enumerate(value, start=1):
            yield from _violations(shape.member, part, f"{path}.{number}.member")


def _broken(shape: Any, value: Any) -> Iterator[str]:
    limits, most = shape.metadata, shape.metadata.get("max")
    if shape.type_name in ("integer", "long", "float", "double"):
        if most is not None and value > float(most):
            yield f"have value less than or equal to {most}"
        if "min" in limits and value < float(limits["min"]):
            yield f"have value greater than or equal to {limits['min']}"
    elif shape.type_name in ("string", "list", "map"):
        if most is not None and len(value) > int(most):
            yield f"have length less than or equal to {most}"
        if len(value) < int(limits.get("min", 0)):
            yield f"have length greater than or equal to {limits['min']}"
    if limits.get("enum") and value not in limits["enum"]:
        yield f"satisfy enum value set: [{', '.join(limits['enum'])}]"
    pattern = _pattern(limits["pattern"]) if "pattern" in limits else None
    # moto's ARNs do not always match AWS's format
    if pattern and not value.startswith("arn:") and not pattern.fullmatch(value):
        yield f"satisfy regular expression pattern: {limits['pattern']}"


@cache
def _pattern(java: str) -> re.Pattern[str] | None:
    """Compile a pattern of an API model. None if it has another meaning in Python than in Java."""
    if "&&" in java or "\\p" in java or "[[" in java:
        return None
    try:
        return re.compile(java, re.DOTALL)
    except re.error:
        return None

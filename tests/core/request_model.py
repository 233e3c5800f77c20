"""Validates a CreateTrainingJob request against botocore's model, more strictly than botocore itself."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import botocore.session
from botocore.validate import ParamValidator


def refused(request: Mapping[str, Any]) -> list[str]:
    """The violations of AWS's model in a request.

    botocore checks names, types and required members. Without such errors, this checks allowed values, lengths, and
    patterns that Python supports.
    """
    shape = _input_shape()
    report: Any = ParamValidator().validate(dict(request), shape)
    return [report.generate_report()] if report.has_errors() else [*_violations(request, shape, "")]


@cache
def _input_shape() -> Any:
    session: Any = botocore.session.Session()
    return session.get_service_model("sagemaker").operation_model("CreateTrainingJob").input_shape


def _violations(value: Any, shape: Any, path: str) -> Iterator[str]:
    kind = shape.type_name
    if kind == "structure":
        for name, member in value.items():
            yield from _violations(member, shape.members[name], f"{path}.{name}" if path else name)
    elif kind == "list":
        yield from _range(len(value), shape, path)
        for at, member in enumerate(value):
            yield from _violations(member, shape.member, f"{path}[{at}]")
    elif kind == "map":
        yield from _range(len(value), shape, path)
        for key, member in value.items():
            yield from _violations(key, shape.key, f"{path} (key)")
            yield from _violations(member, shape.value, f"{path}.{key}")
    elif kind == "string":
        yield from _text(value, shape, path)
    elif kind in ("integer", "long"):
        yield from _range(value, shape, path)


def _text(value: str, shape: Any, path: str) -> Iterator[str]:
    if shape.enum and value not in shape.enum:
        yield f"{path}: {value} is not one of {shape.enum}"
    yield from _range(len(value), shape, path)
    pattern = shape.metadata.get("pattern", "")
    if pattern and "\\p{" not in pattern and not re.fullmatch(pattern, value):  # Python does not support \p.
        yield f"{path}: {value} is not of the form {pattern}"


def _range(size: int, shape: Any, path: str) -> Iterator[str]:
    least, most = shape.metadata.get("min"), shape.metadata.get("max")
    if (most is not None and size > most) or (least is not None and size < least):
        yield f"{path}: {size} is not from {least or 0} to {most}"

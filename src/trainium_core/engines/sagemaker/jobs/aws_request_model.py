"""Holds a request against botocore's own model of the service, further than botocore itself does, and offline."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import botocore.session
from botocore.validate import ParamValidator

from trainium_core.jobs.problems import JobError, JobProblem


def check_training_job_request(request: Mapping[str, Any]) -> None:
    """Raises JobError with everything about a CreateTrainingJob request that AWS's model does not allow.

    botocore checks names, types and what is required. Allowed values, patterns and longest lengths are checked here.
    """
    shape = _input_shape()
    validator: Any = ParamValidator()
    report = validator.validate(dict(request), shape)
    if report.has_errors():
        fix = report.generate_report()
        raise JobError([JobProblem(key="CreateTrainingJob", got=None, allowed="what AWS's model allows", fix=fix)])
    problems = list(_violations(request, shape, ""))
    if problems:
        raise JobError(problems)


@cache
def _input_shape() -> Any:
    session: Any = botocore.session.Session()
    return session.get_service_model("sagemaker").operation_model("CreateTrainingJob").input_shape


def _violations(value: Any, shape: Any, path: str) -> Iterator[JobProblem]:
    kind = shape.type_name
    if kind == "structure":
        for name, member in value.items():
            yield from _violations(member, shape.members[name], f"{path}.{name}" if path else name)
    elif kind == "list":
        yield from _range(len(value), value, shape, path, "entries")
        for at, member in enumerate(value):
            yield from _violations(member, shape.member, f"{path}[{at}]")
    elif kind == "map":
        yield from _range(len(value), f"{len(value)} entries", shape, path, "entries")
        for key, member in value.items():
            yield from _violations(key, shape.key, f"{path} (key)")
            yield from _violations(member, shape.value, f"{path}.{key}")
    elif kind == "string":
        yield from _text(value, shape, path)
    elif kind in ("integer", "long"):
        yield from _range(value, value, shape, path, "")


def _text(value: str, shape: Any, path: str) -> Iterator[JobProblem]:
    if shape.enum and value not in shape.enum:
        yield _problem(path, value, f"one of the {len(shape.enum)} that SageMaker knows", "choose another")
    yield from _range(len(value), value, shape, path, "characters")
    pattern = shape.metadata.get("pattern", "")
    if pattern and "\\p{" not in pattern and not re.fullmatch(pattern, value):  # \p is not of Python
        yield _problem(path, value, f"text of the form {pattern}", "write it so")


def _range(size: int, got: object, shape: Any, path: str, unit: str) -> Iterator[JobProblem]:
    least, most = shape.metadata.get("min"), shape.metadata.get("max")
    if (most is not None and size > most) or (least is not None and size < least):
        allowed = f"from {least or 0} to {most} {unit}".rstrip()
        yield _problem(path, got, allowed, f"it has {size}" if unit else "choose another")


def _problem(path: str, got: object, allowed: str, fix: str) -> JobProblem:
    return JobProblem(key=f"CreateTrainingJob.{path}", got=got, allowed=allowed, fix=fix)

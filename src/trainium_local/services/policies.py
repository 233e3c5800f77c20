"""What IAM takes in a policy and moto refuses: an older Version or none, if it is inline, and numbers in conditions."""

import json
from contextvars import ContextVar
from typing import Any

_managed: ContextVar[bool] = ContextVar("managed", default=False)


def create_policy(original: Any, backend: Any, *arguments: Any, **named: Any) -> Any:
    """Of a managed policy IAM asks the newest Version."""
    token = _managed.set(True)
    try:
        return original(backend, *arguments, **named)
    finally:
        _managed.reset(token)


def validate_version(original: Any, validator: Any) -> None:
    if _managed.get():
        original(validator)


def validate_condition_syntax(original: Any, statement: dict[str, Any]) -> None:
    original(json.loads(json.dumps(statement), parse_int=str, parse_float=str))

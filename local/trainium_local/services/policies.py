"""What IAM takes in a policy and moto refuses: an older Version or none, if it is inline, and numbers in conditions."""

import json
from contextvars import ContextVar
from typing import Any

from moto.iam.models import IAMBackend
from moto.iam.policy_validation import BaseIAMPolicyValidator

_moto_validate_version: Any = BaseIAMPolicyValidator._validate_version
_moto_validate_condition_syntax: Any = BaseIAMPolicyValidator._validate_condition_syntax
_moto_create_policy: Any = IAMBackend.create_policy
_managed: ContextVar[bool] = ContextVar("managed", default=False)


def create_policy(backend: Any, *arguments: Any, **named: Any) -> Any:
    """Of a managed policy IAM asks the newest Version."""
    token = _managed.set(True)
    try:
        return _moto_create_policy(backend, *arguments, **named)
    finally:
        _managed.reset(token)


def validate_version(validator: Any) -> None:
    if _managed.get():
        _moto_validate_version(validator)


def validate_condition_syntax(statement: dict[str, Any]) -> None:
    _moto_validate_condition_syntax(json.loads(json.dumps(statement), parse_int=str, parse_float=str))

"""The quotas of IAM for the sizes of policies, without white space (IAM User Guide, IAM and AWS STS quotas)."""

import re
from typing import Any

from trainium_local.services.errors import Refused

_INLINE, _MANAGED = {"role": 10_240, "user": 2_048, "group": 5_120}, 6_144


def put_role_policy(original: Any, backend: Any, role_name: str, policy_name: str, policy_json: str) -> None:
    _check_inline("role", backend.get_role(role_name), policy_name, policy_json)
    original(backend, role_name, policy_name, policy_json)


def put_user_policy(original: Any, backend: Any, user_name: str, policy_name: str, policy_json: str) -> None:
    _check_inline("user", backend.get_user(user_name), policy_name, policy_json)
    original(backend, user_name, policy_name, policy_json)


def put_group_policy(original: Any, backend: Any, group_name: str, policy_name: str, policy_json: str) -> None:
    _check_inline("group", backend.get_group(group_name), policy_name, policy_json)
    original(backend, group_name, policy_name, policy_json)


def managed_policy(original: Any, backend: Any, *arguments: Any, **named: Any) -> Any:
    """Check the document of a new managed policy, or of a new version."""
    document = named.get("policy_document") or next(text for text in arguments if str(text).lstrip().startswith("{"))
    if _size(document) > _MANAGED:
        raise Refused("LimitExceeded", f"Cannot exceed quota for PolicySize: {_MANAGED}")
    return original(backend, *arguments, **named)


def _check_inline(kind: str, owner: Any, policy_name: str, document: str) -> None:
    others = [text for name, text in owner.policies.items() if name != policy_name]
    if sum(map(_size, [*others, document])) > _INLINE[kind]:
        raise Refused("LimitExceeded", f"Maximum policy size of {_INLINE[kind]} bytes exceeded for {kind} {owner.name}")


def _size(document: str) -> int:
    return len(re.sub(r"\s", "", document))

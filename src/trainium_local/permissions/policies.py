"""Evaluates IAM policies for an action on a resource (IAM User Guide, Policy evaluation logic). Independent of moto.

Parts of a request can be unknown: `*` in the resource stands for an unknown part, and the value of a condition key can
be unknown. If the result depends on an unknown part, Allow statements apply, and Deny statements do not.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from cfnlint.helpers import ensure_list

Statement = Mapping[str, Any]
Context = Callable[[str], Sequence[str] | None]
"""Condition key (lower case) -> values: empty if the request has none, None if they are unknown."""


@dataclass(frozen=True, kw_only=True)
class Access:
    """One action on one resource.

    Attributes:
        action: The action, such as s3:GetObject.
        resource: An ARN. Empty for an action without resources, which only `*` allows.
        context: Returns the values of condition keys.
    """

    action: str
    resource: str
    context: Context


@cache
def statements(document: str) -> tuple[Statement, ...]:
    """Return the statements of a policy document."""
    return tuple(ensure_list(json.loads(document)["Statement"]))


def refusal(policies: Mapping[str, Sequence[Statement]], access: Access) -> str | None:
    """Return why access is denied, as in AWS's message, or None.

    Every kind of policy in `policies`, e.g. `session policy`, must allow the access.
    """
    effects = {kind: _effects(policy, access) for kind, policy in policies.items()}
    for kind in effects:
        if "Deny" in effects[kind]:
            return f"with an explicit deny in a{'n' * kind.startswith('i')} {kind}"
    implicit_deny = next((kind for kind in effects if "Allow" not in effects[kind]), None)
    return implicit_deny and f"because no {implicit_deny} allows the {access.action} action"


def allows(policy: Iterable[Statement], access: Access, principals: set[str]) -> bool:
    """Return whether a resource-based policy allows a principal with these names: ARNs, account, service, `*`."""
    return _effects((statement for statement in policy if _principals(statement) & principals), access) == {"Allow"}


def _principals(statement: Statement) -> set[str]:
    principals = statement.get("Principal", [])
    return {
        name
        for kind in (principals.values() if isinstance(principals, Mapping) else [principals])
        for name in ensure_list(kind)
    }


def _effects(policy: Iterable[Statement], access: Access) -> set[str]:
    return {statement["Effect"] for statement in policy if applies(statement, access)}


def applies(statement: Statement, access: Access) -> bool:
    """Return whether a statement matches the access, regardless of its effect and principals."""
    believed = statement["Effect"] == "Allow"

    def is_about(element: str, value: str, *, ignore_case: bool = False) -> bool:
        opposite = f"Not{element}" in statement
        patterns = ensure_list(statement.get(f"Not{element}" if opposite else element, "*"))
        if ignore_case:
            patterns, value = [pattern.lower() for pattern in patterns], value.lower()
        fits = _may_fit if believed != opposite else _fits
        return any(fits(pattern, value) for pattern in patterns) != opposite

    if not is_about("Action", access.action, ignore_case=True) or not is_about("Resource", access.resource):
        return False
    return all(
        (believed if holds is None else holds)
        for test, expected in (statement.get("Condition") or {}).items()
        for key, values in expected.items()
        for holds in [_holds(test, [str(value) for value in ensure_list(values)], access.context(key.lower()))]
    )


def _holds(test: str, expected: list[str], values: Sequence[str] | None) -> bool | None:
    """Return whether a condition is true, e.g. `ForAnyValue:StringNotLikeIfExists`. None if unknown."""
    quantifier, _, name = test.rpartition(":")
    base = name.removesuffix("IfExists")
    compare, negated = _COMPARISONS.get(base.replace("Not", "")), "Not" in base
    if values is not None and base == "Null":
        return (not values) == (expected[0].lower() == "true")
    if values is None or compare is None:
        return None
    if not values:
        return base != name or negated or quantifier == "ForAllValues"
    matches = [any(compare(value, text) for text in expected) != negated for value in values]
    return any(matches) if quantifier == "ForAnyValue" else all(matches)


def _fits(pattern: str, text: str) -> bool:
    return _regex(pattern).fullmatch(text) is not None


def _may_fit(pattern: str, text: str) -> bool:
    """Return whether the pattern can match the text, which may have unknown parts."""
    pattern = re.sub(r"\$\{[^}]*\}", "*", pattern)  # policy variables have no known value
    return _overlap(pattern, text) if "*" in text else _fits(pattern, text)


@lru_cache(maxsize=65536)
def _overlap(pattern: str, text: str) -> bool:
    if not pattern or not text:
        return not (pattern + text).strip("*")
    if pattern[0] == "*":
        return _overlap(pattern[1:], text) or _overlap(pattern, text[1:])
    if text[0] == "*":  # an ID or a name, which is one segment of an ARN
        return _overlap(pattern, text[1:]) or (pattern[0] not in "/:" and _overlap(pattern[1:], text))
    return pattern[0] in ("?", text[0]) and _overlap(pattern[1:], text[1:])


@cache
def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)


_COMPARISONS: dict[str, Callable[[str, str], bool]] = {
    "StringEquals": lambda value, expected: value == expected,
    "StringEqualsIgnoreCase": lambda value, expected: value.lower() == expected.lower(),
    "StringLike": lambda value, expected: _fits(expected, value),
    "ArnEquals": lambda value, expected: _fits(expected, value),
    "ArnLike": lambda value, expected: _fits(expected, value),
    "Bool": lambda value, expected: value.lower() == expected.lower(),
}

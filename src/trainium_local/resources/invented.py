"""Values for what a stored resource would have been given by its service: they keep to the type's schema."""

import importlib
import re
import string
from typing import Any

from moto.moto_api._internal import mock_random

# Python's own parser of patterns, which it keeps for itself
_parse: Any = importlib.import_module("re._parser").parse
_TRIES = 400
_SETTLED = re.compile(r"active|available|ready|in_?service|completed?|succeeded|created|enabled", re.IGNORECASE)
_CATEGORIES = {"DIGIT": string.digits, "WORD": string.ascii_lowercase, "NOT_SPACE": string.ascii_lowercase}
_EMPTY: dict[str, Any] = {"object": {}, "array": [], "boolean": False}


def fitting(schema: dict[str, Any], value: str, *, region: str, account: str) -> Any:
    """`value` if the schema takes it, else one that it takes; `value` again if none is found."""
    kinds = schema.get("type") or "string"
    kind = kinds if isinstance(kinds, str) else kinds[0]
    if kind in _EMPTY:
        return _EMPTY[kind]
    if kind in ("integer", "number"):
        return schema.get("minimum", schema.get("enum", [1])[0])
    choices = schema.get("enum")
    if choices and value not in choices:
        return next((one for one in choices if _SETTLED.fullmatch(str(one))), choices[0])
    lower = value.lower()
    wanted = [value, lower, f"{lower}/1.0.0", f"{lower}/1.0.0/1", value[: schema.get("maxLength")], account]
    for candidate in wanted:
        if _takes(schema, candidate):
            return candidate
    pattern = schema.get("pattern") or f"[a-z0-9]{{{schema.get('minLength', 1)}}}"
    for tried in range(_TRIES):  # longer and shorter ones, where the pattern leaves it open
        made = _from_pattern(pattern, min(schema.get("maxLength", 40), 40) // (1 + tried % 8))
        for candidate in (_placed(made, region, account), made):
            if _takes(schema, candidate):
                return candidate
    return value


def _takes(schema: dict[str, Any], text: str) -> bool:
    if not schema.get("minLength", 0) <= len(text) <= schema.get("maxLength", len(text)):
        return False
    try:
        return re.search(schema.get("pattern", ""), text) is not None
    except re.error:  # in Java's dialect
        return True


def _placed(arn: str, region: str, account: str) -> str:
    parts = arn.split(":", 5)
    return ":".join([*parts[:3], region, account, parts[5]]) if len(parts) == 6 else arn


def _from_pattern(pattern: str, longest: int) -> str:
    try:
        return "".join(_texts(_parse(pattern), longest))
    except re.error:
        return ""


def _texts(tokens: Any, longest: int) -> list[str]:
    return [_text(str(operation), argument, longest) for operation, argument in tokens]


def _text(operation: str, argument: Any, longest: int) -> str:
    if operation == "LITERAL":
        return chr(argument)
    if operation in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        least, most, inner = argument
        reach = max(least, min(int(most), least + longest) - mock_random.choice(range(3)))
        times = mock_random.choice((reach, mock_random.choice(range(least, reach + 1))))
        return "".join("".join(_texts(inner, longest)) for _ in range(times))
    if operation == "SUBPATTERN":
        return "".join(_texts(argument[-1], longest))
    if operation == "BRANCH":
        return "".join(_texts(mock_random.choice(argument[1]), longest))
    if operation == "IN":
        return mock_random.choice(_members(argument))
    return "a" if operation in ("ANY", "NOT_LITERAL") else ""


def _members(items: Any) -> str:
    """The characters of a class, letters and digits if it has any."""
    found = ""
    for operation, argument in ((str(operation), argument) for operation, argument in items):
        if operation == "LITERAL":
            found += chr(argument)
        elif operation == "RANGE":
            found += "".join(map(chr, range(argument[0], min(argument[1], 126) + 1)))
        elif operation == "CATEGORY":
            found += _CATEGORIES.get(str(argument).removeprefix("CATEGORY_"), "")
        elif operation == "NEGATE":
            return string.ascii_lowercase
    return "".join(one for one in found if one.isalnum()) or found or "a"

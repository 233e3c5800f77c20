"""Reads JSON values into dataclasses, by the annotations of their fields."""

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from math import isfinite
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

Value = TypeVar("Value")

_NAMES = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}

_hints = cache(get_type_hints)


class JsonValueError(ValueError):
    """A value that does not fit its field. The message is a sentence without a period that begins with the field."""


def from_json(raw: Mapping[str, Any], expected: type[Value], *, schema: str) -> Value:
    """The dataclass with the values of a JSON object.

    Args:
        raw: The object.
        expected: The dataclass. The object may have its fields and no others. Fields can be str, int, float, bool,
            dataclasses, `tuple[X, ...]`, `Mapping[str, X]` and `X | None`. A missing field has its default, or is None
            if it may be None.
        schema: The name of the format, for messages.

    Raises:
        JsonValueError: A required field is missing, or a field is not part of the dataclass, has another type, or has
            a number that is not finite or too large for a float.
    """
    return _read_dataclass(raw, expected, "", schema)


def _read(raw: Any, expected: Any, place: str, schema: str) -> Any:
    origin = get_origin(expected)
    if origin is UnionType:
        kinds = [kind for kind in get_args(expected) if kind is not NoneType]
        return None if raw is None else _read(raw, kinds[0], place, schema)
    if origin is tuple:
        inner, items = get_args(expected)[0], _checked(raw, list, place)
        return tuple(_read(item, inner, f"{place}[{index}]", schema) for index, item in enumerate(items))
    if origin is not None:  # Mapping.
        inner, items = get_args(expected)[1], _checked(raw, dict, place)
        return {name: _read(item, inner, f"{place}.{name}", schema) for name, item in items.items()}
    if is_dataclass(expected):
        return _read_dataclass(_checked(raw, dict, place), cast("type[Any]", expected), f"{place}.", schema)
    return _checked(raw, expected, place)


def _read_dataclass(raw: Mapping[str, Any], expected: type[Value], prefix: str, schema: str) -> Value:
    hints = _hints(expected)
    for name in raw:
        if name not in hints:
            raise JsonValueError(f"{prefix}{name} is not part of {schema}")
    values = {name: _read(value, hints[name], f"{prefix}{name}", schema) for name, value in raw.items()}
    for field in fields(cast("Any", expected)):
        if field.name in raw or not is_required(field):
            continue
        if NoneType not in get_args(hints[field.name]):
            raise JsonValueError(f"{prefix}{field.name} is missing")
        values[field.name] = None
    return expected(**values)


def is_required(field: "Field[Any]") -> bool:
    """Whether a field of a dataclass has no default."""
    return field.default is MISSING and field.default_factory is MISSING


def _checked(raw: Any, kind: type[Any], place: str) -> Any:
    is_bool = isinstance(raw, bool)
    fits = is_bool == (kind is bool) and isinstance(raw, (int, float) if kind is float else kind)
    if not fits:
        raise JsonValueError(f"{place} is {shown(raw)}, not {_NAMES[kind]}")
    if kind is float:
        try:
            value = float(raw)
        except OverflowError as error:
            raise JsonValueError(f"{place} is {shown(raw)}, which is too large for a number") from error
        if not isfinite(value):
            raise JsonValueError(f"{place} is {value}, which is not finite")
        return value
    return raw


def shown(raw: object) -> str:
    """The value as a message shows it, shortened if it is long."""
    text = repr(raw)
    return text if len(text) <= 60 else f"{text[:60]}..."

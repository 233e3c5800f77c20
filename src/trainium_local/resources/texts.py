"""Text templates such as "{id}", "{answer[Vpc][VpcId]}" or "{properties[GroupName]}"."""

from collections.abc import Mapping
from string import Formatter
from typing import Any

Texts = Mapping[str, Any]


class PropertyValues(dict[str, Any]):
    """Properties. An omitted property is an empty string."""

    def __missing__(self, key: str) -> str:
        return ""


def fill(text: Any, variables: Mapping[str, Any]) -> Any:
    """Fill in a text, or the texts in a map or list.

    A text that consists of one name in braces becomes the value itself if that is a map, a list or None.

    Raises:
        LookupError, TypeError, AttributeError: A value is missing.
    """
    if isinstance(text, Mapping):
        return {key: fill(item, variables) for key, item in text.items()}
    if isinstance(text, list):
        return [fill(item, variables) for item in text]
    if not isinstance(text, str):
        return text
    if not text.startswith("{") or text.count("{") > 1 or not text.endswith("}"):
        return text.format_map(variables)
    value = Formatter().get_field(text[1:-1], (), variables)[0]
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, dict | list | None) else str(value)


def fill_known(texts: Texts, variables: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in the texts whose values all exist, and omit the others."""
    filled: dict[str, Any] = {}
    for name, text in texts.items():
        try:
            filled[name] = fill(text, variables)
        except (LookupError, TypeError, AttributeError):
            continue
    return {name: value for name, value in filled.items() if value is not None}


def put(arguments: dict[str, Any], path: str, value: Any) -> None:
    """Set an argument. A dotted path sets a nested argument; the containers are copied."""
    *outer, last = path.split(".")
    for step in outer:
        arguments[step] = dict(arguments.get(step) or {})
        arguments = arguments[step]
    arguments[last] = value

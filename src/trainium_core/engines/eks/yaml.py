"""Writes Kubernetes objects as YAML, for people and for kubectl."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9./_-]*")
_WORDS = ("true", "false", "yes", "no", "on", "off", "y", "n", "null")


def yaml_documents(objects: Iterable[Mapping[str, Any]]) -> str:
    """The objects, separated by lines of three hyphens."""
    return "---\n".join("\n".join(_lines(each)) + "\n" for each in objects)


def _lines(value: object) -> Iterator[str]:
    if not value:
        yield _scalar(value)
    elif isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            yield from _entry(f"{_scalar(key)}:", item)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            first, *rest = _lines(item)
            yield f"- {first}"
            yield from (f"  {line}" for line in rest)
    else:
        yield _scalar(value)


def _entry(key: str, item: Any) -> Iterator[str]:
    if not isinstance(item, dict | list) or not item:
        yield f"{key} {_scalar(cast('object', item))}"
        return
    yield key
    yield from (f"  {line}" for line in _lines(cast("object", item)))


def _scalar(value: object) -> str:
    """The value. Texts that YAML could read as something else are in double quotes, as in JSON."""
    is_plain = isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS
    return str(value) if is_plain else json.dumps(value)

"""Which resources and parameters a part of a template names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_SUBSTITUTION = re.compile(r"\$\{([^!}][^}]*)\}")


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A place that names a resource or parameter; `attribute` is set for Fn::GetAtt, `variable` within Fn::Sub."""

    name: str
    attribute: str | None = None
    variable: bool = False


def references(value: Any) -> Iterator[Reference]:
    """All places below `value` that name a resource or a parameter."""
    if isinstance(value, list):
        for item in value:
            yield from references(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if len(value) > 1:
                yield from references(item)
            elif key == "Ref" and isinstance(item, str):
                yield Reference(name=item)
            elif key == "Fn::GetAtt":
                name, _, attribute = item.partition(".") if isinstance(item, str) else (item[0], ".", item[1])
                yield Reference(name=name, attribute=attribute if isinstance(attribute, str) else None)
            elif key == "Fn::Sub":
                yield from _substitutions(item)
            else:
                yield from references(item)


def needed_by(definition: Mapping[str, Any]) -> set[str]:
    """All that a resource's properties and DependsOn name, parameters too."""
    return {reference.name for reference in references(definition.get("Properties"))} | depends_on(definition)


def depends_on(definition: Mapping[str, Any]) -> set[str]:
    """All that its DependsOn names."""
    named = definition.get("DependsOn") or []
    return {named} if isinstance(named, str) else set(named)


def _substitutions(argument: Any) -> Iterator[Reference]:
    text, given = (argument, {}) if isinstance(argument, str) else (argument[0], argument[1])
    yield from references(given)
    for expression in _SUBSTITUTION.findall(text):
        name, _, attribute = expression.strip().partition(".")
        if expression not in given:
            yield Reference(name=name, attribute=attribute or None, variable=True)

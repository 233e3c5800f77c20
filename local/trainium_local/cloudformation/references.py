"""Which resources and parameters a part of a template names."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainium_local.cloudformation.values import functions

_SUBSTITUTION = re.compile(r"\$\{([^!}][^}]*)\}")


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A place that names a resource or parameter; `attribute` is set for Fn::GetAtt, `variable` within Fn::Sub."""

    name: str
    attribute: str | None = None
    variable: bool = False


def references(value: Any) -> Iterator[Reference]:
    """All places below `value` that name a resource or a parameter."""
    for function, argument in functions(value):
        if function == "Ref" and isinstance(argument, str):
            yield Reference(name=argument)
        elif function == "Fn::GetAtt":
            name, attribute = argument.split(".", 1) if isinstance(argument, str) else argument
            yield Reference(name=name, attribute=attribute if isinstance(attribute, str) else None)
        elif function == "Fn::Sub":
            text, given = (argument, {}) if isinstance(argument, str) else argument
            for expression in _SUBSTITUTION.findall(text):
                name, _, attribute = expression.strip().partition(".")
                if expression not in given:
                    yield Reference(name=name, attribute=attribute or None, variable=True)


def needed_by(definition: Mapping[str, Any]) -> set[str]:
    """All that a resource's properties and DependsOn name, parameters too."""
    return {reference.name for reference in references(definition.get("Properties"))} | depends_on(definition)


def depends_on(definition: Mapping[str, Any]) -> set[str]:
    """All that its DependsOn names."""
    named = definition.get("DependsOn") or []
    return {named} if isinstance(named, str) else set(named)

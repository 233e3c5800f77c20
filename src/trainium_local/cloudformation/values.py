"""The values of a template, JSON with intrinsic functions in it, and which resources and parameters they name."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_SUBSTITUTION = re.compile(r"\$\{([^!}][^}]*)\}")


def walk(value: Any) -> Iterator[tuple[str, Any]]:
    """`value` and all that is below it, in order, with their JSON pointers."""
    waiting = [("", value)]
    while waiting:
        path, part = waiting.pop()
        yield path, part
        if isinstance(part, dict):
            waiting += [(f"{path}/{step}", item) for step, item in reversed(part.items())]
        elif isinstance(part, list):
            waiting += [(f"{path}/{step}", item) for step, item in reversed(list(enumerate(part)))]


def functions(value: Any) -> Iterator[tuple[str, Any]]:
    """All intrinsic functions in `value`, with their arguments."""
    for _, part in walk(value):
        if isinstance(part, dict) and len(part) == 1:
            ((name, argument),) = part.items()
            if name == "Ref" or name.startswith("Fn::"):
                yield name, argument


def with_texts(value: Any, change: Callable[[str], Any]) -> Any:
    """`value` with every text in it, but for keys, as `change` makes it."""
    if isinstance(value, dict):
        return {key: with_texts(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [with_texts(item, change) for item in value]
    return change(value) if isinstance(value, str) else value


def as_text(value: Any) -> str:
    """A scalar as CloudFormation writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A place that names a resource or parameter; `attribute` is set for Fn::GetAtt."""

    name: str
    attribute: str | None = None


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
                    yield Reference(name=name, attribute=attribute or None)


def needed_by(definition: Mapping[str, Any]) -> set[str]:
    """All that a resource's properties and DependsOn name, parameters too."""
    return {reference.name for reference in references(definition.get("Properties"))} | depends_on(definition)


def depends_on(definition: Mapping[str, Any]) -> set[str]:
    """All that its DependsOn names."""
    named = definition.get("DependsOn") or []
    return {named} if isinstance(named, str) else set(named)

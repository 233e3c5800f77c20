"""The values of a template (JSON with intrinsic functions), and the resources and parameters that they refer to."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_SUBSTITUTION = re.compile(r"\$\{([^!}][^}]*)\}")


def walk(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield `value` and everything below it, in order, with JSON pointers."""
    waiting = [("", value)]
    while waiting:
        path, part = waiting.pop()
        yield path, part
        if isinstance(part, dict):
            waiting += [(f"{path}/{step}", item) for step, item in reversed(part.items())]
        elif isinstance(part, list):
            waiting += [(f"{path}/{step}", item) for step, item in reversed(list(enumerate(part)))]


def functions(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield each Ref and Fn:: function in `value`, with its argument."""
    for _, part in walk(value):
        if isinstance(part, dict) and len(part) == 1:
            ((name, argument),) = part.items()
            if name == "Ref" or name.startswith("Fn::"):
                yield name, argument


def as_text(value: Any) -> str:
    """Return a scalar in CloudFormation's text form."""
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A reference to a resource or parameter.

    Attributes:
        name: Logical ID of the resource, or name of the parameter.
        attribute: Name of the attribute, for Fn::GetAtt and Fn::Sub.
    """

    name: str
    attribute: str | None = None


def references(value: Any) -> Iterator[Reference]:
    """Yield all references to resources and parameters in `value`."""
    for function, argument in functions(value):
        if function == "Ref" and isinstance(argument, str):
            yield Reference(name=argument)
        elif function == "Fn::GetAtt":
            name, attribute = argument.split(".", 1) if isinstance(argument, str) else argument
            yield Reference(name=name, attribute=attribute if isinstance(attribute, str) else None)
        elif function == "Fn::Sub":
            text, variables = (argument, {}) if isinstance(argument, str) else argument
            for expression in _SUBSTITUTION.findall(text):
                name, _, attribute = expression.strip().partition(".")
                if expression not in variables:
                    yield Reference(name=name, attribute=attribute or None)


def needed_by(definition: Mapping[str, Any]) -> set[str]:
    """Return everything that a resource's properties and DependsOn refer to, including parameters."""
    return {reference.name for reference in references(definition.get("Properties"))} | depends_on(definition)


def depends_on(definition: Mapping[str, Any]) -> set[str]:
    """Return the names in DependsOn."""
    named = definition.get("DependsOn") or []
    return {named} if isinstance(named, str) else set(named)

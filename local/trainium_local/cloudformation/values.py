"""Walking through the values of a template: JSON with intrinsic functions in it."""

from collections.abc import Callable, Iterator
from typing import Any


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

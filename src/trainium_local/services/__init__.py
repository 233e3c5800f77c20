"""Replacements of attributes of moto's classes and modules, listed in replaced.toml."""

import inspect
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, reduce
from importlib import import_module
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class ReplacedOperation:
    """The replacement of an attribute.

    Attributes:
        owner: moto's class or module.
        name: Name of the attribute.
        by: The new value.
        why: The reason.
    """

    owner: Any
    name: str
    by: Any
    why: str


@cache
def replacements() -> tuple[ReplacedOperation, ...]:
    """Return all replacements of replaced.toml."""
    rows = tomllib.loads((files(__name__) / "replaced.toml").read_text())
    return tuple(row for module, functions in rows.items() for row in _rows(f"trainium_local.{module}", functions))


def _rows(module: str, functions: dict[str, Any]) -> Iterator[ReplacedOperation]:
    for function, row in functions.items():
        by = getattr(import_module(module), function)
        for symbol in row["of"] if isinstance(row["of"], list) else [row["of"]]:
            place, _, path = symbol.partition(":")
            *outer, name = path.split(".")
            owner = reduce(getattr, outer, import_module(place))
            yield ReplacedOperation(owner, name, _with_original(by, getattr(owner, name, None)), row["why"])


def _with_original(by: Callable[..., Any], original: Any) -> Any:
    """Return the function. If its first parameter is named `original`, bind the original attribute to it."""
    if next(iter(inspect.signature(by).parameters)) != "original":
        return by
    moto_function = original.fget if isinstance(original, property) else original

    def wrapped(*arguments: Any, **named: Any) -> Any:
        return by(moto_function, *arguments, **named)

    return property(wrapped) if isinstance(original, property) else wrapped


def replace() -> None:
    """Apply all replacements."""
    for replacement in replacements():
        setattr(replacement.owner, replacement.name, replacement.by)


def install(*, endpoint: str) -> None:
    """Apply all replacements, and prepare the execution of Lambda functions.

    Args:
        endpoint: Endpoint for Lambda functions.
    """
    from trainium_local.services import lambda_process

    replace()
    lambda_process.clear_leftovers()
    lambda_process.use_endpoint(endpoint)

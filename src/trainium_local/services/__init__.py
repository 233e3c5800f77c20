"""Replacements of moto's behaviour. replaced.toml lists all of them except CloudFormation."""

import inspect
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, reduce
from importlib import import_module
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Replaced:
    """A replaced attribute of a moto class or module, its replacement, and the reason."""

    owner: Any
    name: str
    by: Any
    why: str


@cache
def replaced() -> tuple[Replaced, ...]:
    """Return all rows of replaced.toml."""
    rows = tomllib.loads((files(__name__) / "replaced.toml").read_text())
    return tuple(row for module, functions in rows.items() for row in _rows(f"trainium_local.{module}", functions))


def _rows(module: str, functions: dict[str, Any]) -> Iterator[Replaced]:
    for function, row in functions.items():
        by = getattr(import_module(module), function)
        for symbol in row["of"] if isinstance(row["of"], list) else [row["of"]]:
            place, _, path = symbol.partition(":")
            *outer, name = path.split(".")
            owner = reduce(getattr, outer, import_module(place))
            yield Replaced(owner, name, _given_original(by, getattr(owner, name, None)), row["why"])


def _given_original(by: Callable[..., Any], original: Any) -> Any:
    """Return the function, with the replaced attribute bound to its first argument if that is named `original`."""
    if next(iter(inspect.signature(by).parameters)) != "original":
        return by
    moto_does = original.fget if isinstance(original, property) else original

    def wrapped(*arguments: Any, **named: Any) -> Any:
        return by(moto_does, *arguments, **named)

    return property(wrapped) if isinstance(original, property) else wrapped


def replace() -> None:
    """Apply all replacements."""
    for replacement in replaced():
        setattr(replacement.owner, replacement.name, replacement.by)


def install(*, endpoint: str) -> None:
    """Apply all replacements.

    Args:
        endpoint: Lambda functions use it.
    """
    from trainium_local.services import lambda_process

    replace()
    lambda_process.clear_leftovers()
    lambda_process.use_endpoint(endpoint)

"""Properties with API calls of their own: made after the creation, and whenever the property changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from trainium_local.resources.registry import NeedsReplacementError

Calls = Iterator[tuple[str, dict[str, Any]]]


class OwnCalls(Protocol):
    """A property and the calls that bring it from one value to another; None is a property that is not given."""

    @property
    def property_name(self) -> str: ...

    @property
    def part_of_creation(self) -> bool: ...

    def calls(self, old: Any, new: Any) -> Calls: ...


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A property that one call sets, and another one resets. `part_of_creation`: the creating call sets it too."""

    property_name: str
    operation: str
    argument: str
    value: Callable[[Any], Any] = lambda given: given
    reset: str = ""
    part_of_creation: bool = False

    def calls(self, old: Any, new: Any) -> Calls:
        if new is not None:
            yield self.operation, {self.argument: self.value(new)}
        elif self.reset:
            yield self.reset, {}
        else:
            raise NeedsReplacementError


@dataclass(frozen=True, kw_only=True)
class Members:
    """A list of which each member is added and removed by a call. `initial`: what a new resource has unasked."""

    property_name: str
    add: str
    remove: str
    arguments: Callable[[Any], dict[str, Any]]
    initial: tuple[Any, ...] = ()
    part_of_creation: bool = False

    def calls(self, old: Any, new: Any) -> Calls:
        before, after = self.initial if old is None else old, new or []
        for member in before:
            if member not in after:
                yield self.remove, self.arguments(member)
        for member in after:
            if member not in before:
                yield self.add, self.arguments(member)

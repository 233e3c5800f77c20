"""Properties with separate API calls, made after creation and whenever the property changes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trainium_local.resources.registry import NeedsReplacementError


@dataclass(frozen=True, kw_only=True)
class ResourceSetting:
    """A property and the calls that change it.

    Both calls receive the resource's identifiers and arguments. Arguments are text templates in which {value} is the
    property.

    Attributes:
        property_name: The property.
        operation: Sets the property.
        arguments: Arguments of `operation`.
        reset: Removes the property. Without it, removal requires replacement.
        reset_arguments: Arguments of `reset`. Default: those of `operation` if `each` is set, else none.
        part_of_creation: The creating call sets the property too.
        each: The property is a list, and the calls add and remove one member, {value}.
        initial: The members of the resource if the property is omitted.
        emptied: The members are removed before the resource is deleted.
    """

    property_name: str
    operation: str
    arguments: Any
    reset: str = ""
    reset_arguments: Any = None
    part_of_creation: bool = False
    each: bool = False
    initial: tuple[Any, ...] = ()
    emptied: bool = False

    def calls(self, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
        """Yield operation, argument templates, and the value for them. None is an omitted property."""
        before = [old] if not self.each else self.initial if old is None else old
        after = [new] if not self.each else self.initial if new is None else new
        for value in before:
            if value not in after and (self.each or new is None):
                if not self.reset:
                    raise NeedsReplacementError
                default = self.arguments if self.each else {}
                yield self.reset, default if self.reset_arguments is None else self.reset_arguments, value
        for value in after:
            if value not in before and value is not None:
                yield self.operation, self.arguments, value

"""A stack and what it has, or had."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class MadeResource:
    """A resource that a stack has, or had. `kind` is its CloudFormation type.

    `kept`: it stays when the stack goes, or has stayed. `gone`: CloudFormation has deleted it. `other`: it is not the
    cluster's, but something else in a stack of an app of one's own.
    """

    kind: str
    resource_id: str
    kept: bool = False
    gone: bool = False
    other: bool = False


@dataclass(frozen=True, kw_only=True)
class StackDescription:
    """A stack and its resources. `cluster` is the tag trn:cluster of the stack or of what it made, if there is one."""

    name: str
    stack_id: str
    status: str
    cluster: str | None
    protected: bool = False
    resources: tuple[MadeResource, ...] = ()

    def ids(self, kind: str) -> tuple[str, ...]:
        """Of the cluster's resources of a kind that go with the stack and are not gone yet."""
        return tuple(
            made.resource_id
            for made in self.resources
            if made.kind == kind and not (made.kept or made.gone or made.other)
        )

    @property
    def others(self) -> tuple[MadeResource, ...]:
        """What the stack has besides the cluster, and would go with it."""
        return tuple(made for made in self.resources if made.other and not (made.kept or made.gone))


@dataclass(frozen=True, kw_only=True)
class StackProgress:
    """How far a stack is. `left`: its resources that are not deleted; `failures`: what would not go, and why."""

    status: str
    left: int = 0
    failures: tuple[str, ...] = ()


class Stacks(Protocol):
    def existing_stacks(self, names: Sequence[str]) -> Sequence[StackDescription]: ...

    def deleted_stacks(self, names: Sequence[str]) -> Sequence[StackDescription]:
        """The deleted stacks of these names that CloudFormation remembers."""
        ...

    def stack_progress(self, stack_id: str) -> StackProgress: ...

    def stack_that_has(self, resource_id: str) -> str | None:
        """The existing stack that a resource is part of."""
        ...

    def delete_stack(self, stack_id: str) -> None: ...

"""A stack and its current and former resources."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class MadeResource:
    """A current or former resource of a stack. `kind`: its CloudFormation type.

    Attributes:
        kept: It is, or was, retained when the stack is deleted.
        gone: CloudFormation has deleted it.
        other: It does not belong to the cluster.
    """

    kind: str
    resource_id: str
    kept: bool = False
    gone: bool = False
    other: bool = False


@dataclass(frozen=True, kw_only=True)
class StackDescription:
    """A stack and its resources. `cluster`: the tag trn:cluster of the stack or its resources, if any."""

    name: str
    stack_id: str
    status: str
    cluster: str | None
    protected: bool = False
    resources: tuple[MadeResource, ...] = ()

    def ids(self, kind: str) -> tuple[str, ...]:
        """Physical IDs of the cluster's resources of a kind that are deleted with the stack and still exist."""
        return tuple(
            made.resource_id
            for made in self.resources
            if made.kind == kind and not (made.kept or made.gone or made.other)
        )

    @property
    def others(self) -> tuple[MadeResource, ...]:
        """Other resources in the stack, which would be deleted with it."""
        return tuple(made for made in self.resources if made.other and not (made.kept or made.gone))


@dataclass(frozen=True, kw_only=True)
class StackProgress:
    """The state of a deletion. `left`: remaining resources. `failures`: errors by resource."""

    status: str
    left: int = 0
    failures: tuple[str, ...] = ()


class Stacks(Protocol):
    def existing_stacks(self, names: Sequence[str]) -> Sequence[StackDescription]: ...

    def deleted_stacks(self, names: Sequence[str]) -> Sequence[StackDescription]:
        """The deleted stacks of these names that CloudFormation still lists."""
        ...

    def stack_progress(self, stack_id: str) -> StackProgress: ...

    def stack_containing(self, resource_id: str) -> str | None:
        """The existing stack that contains a resource."""
        ...

    def delete_stack(self, stack_id: str) -> None: ...

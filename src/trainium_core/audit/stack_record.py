"""What CloudFormation remembers of a stack, for 90 days after its deletion too."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from trainium_core.audit.resource import arn_name

KEPT = "DELETE_SKIPPED"
"""Status of what a stack made and retained."""


@dataclass(frozen=True, kw_only=True)
class StackRecord:
    """`made`: the last status of everything it ever made, by CloudFormation type and physical id.

    `cluster`: the cluster that its tag names. `deleted`: when it was gone, or None if it stands, if only in part.
    `shared`: it has, or had, other things than the cluster, which `made` leaves out.
    """

    name: str
    stack_id: str
    status: str
    cluster: str | None
    created: datetime
    deleted: datetime | None = None
    made: Mapping[tuple[str, str], str]
    shared: bool = False

    @property
    def exists(self) -> bool:
        return self.deleted is None


@dataclass(frozen=True, kw_only=True)
class Stacks:
    """The stacks of one cluster, and the names and ids of all others in the account."""

    own: tuple[StackRecord, ...]
    other_names: frozenset[str]
    other_ids: frozenset[str]
    bootstrap: tuple[StackRecord, ...] = ()

    @property
    def made_names(self) -> frozenset[str]:
        """What the cluster's stacks ever made, by id and by the id in its ARN: parts of it may have outlived it."""
        made = [name for stack in self.own for _, name in stack.made]
        return frozenset([*made, *map(arn_name, made)])

    def maker_of(self, resource_type: str, ids: Iterable[str]) -> StackRecord | None:
        return _maker(self.own, resource_type, ids)

    def bootstrap_made(self, resource_type: str, ids: Iterable[str]) -> bool:
        return _maker(self.bootstrap, resource_type, ids) is not None


def status_of(stack: StackRecord, resource_type: str, ids: Iterable[str]) -> str | None:
    """The last status of one thing in the stack; None if the stack did not make it."""
    return next((status for name in ids if (status := stack.made.get((resource_type, name))) is not None), None)


def _maker(stacks: Iterable[StackRecord], resource_type: str, ids: Iterable[str]) -> StackRecord | None:
    wanted = tuple(ids)
    return next((stack for stack in stacks if status_of(stack, resource_type, wanted) is not None), None)

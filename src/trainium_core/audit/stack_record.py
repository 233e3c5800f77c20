"""CloudFormation's record of a stack, which it keeps for 90 days after the deletion."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from trainium_core.audit.resource import arn_name

DELETE_SKIPPED = "DELETE_SKIPPED"
"""Last status of a resource that CloudFormation retained when it deleted the stack."""


@dataclass(frozen=True, kw_only=True)
class AuditedStack:
    """A stack's history.

    Attributes:
        cluster: The cluster in its tag. Without one, the cluster in the tags of its resources, which are read only for
            deleted stacks and stacks with a searched name. None without such a tag.
        deleted: Time of deletion; None if the stack still exists, even partly.
        made: Last status of every resource that it ever created, by CloudFormation type and physical ID; empty for a
            stack with neither a cluster nor a searched name that is not of `cdk bootstrap`.
        shared: Whether its template has resources that do not belong to the cluster. `made` omits them unless the stack
            retained them.
        is_bootstrap: Whether `cdk bootstrap` created it.
    """

    name: str
    stack_id: str
    status: str
    cluster: str | None
    created: datetime
    deleted: datetime | None = None
    made: Mapping[tuple[str, str], str]
    shared: bool = False
    is_bootstrap: bool = False

    @property
    def exists(self) -> bool:
        return self.deleted is None


@dataclass(frozen=True, kw_only=True)
class AuditedStacks:
    """The stacks of one cluster, and the names and IDs of the other stacks that were read."""

    own: tuple[AuditedStack, ...]
    other_names: frozenset[str]
    other_ids: frozenset[str]
    bootstrap: tuple[AuditedStack, ...] = ()

    @property
    def made_names(self) -> frozenset[str]:
        """IDs of all resources that the cluster's stacks created, and the names in those that are ARNs.

        Deleted resources count: their parts may still exist.
        """
        made = [name for stack in self.own for _, name in stack.made]
        return frozenset([*made, *map(arn_name, made)])

    def creating_stack(self, resource_type: str, ids: Iterable[str]) -> AuditedStack | None:
        return _maker(self.own, resource_type, ids)

    def bootstrap_stack(self, resource_type: str, ids: Iterable[str]) -> AuditedStack | None:
        """The stack of `cdk bootstrap` that created a resource; None if none did."""
        return _maker(self.bootstrap, resource_type, ids)


def resource_status(stack: AuditedStack, resource_type: str, ids: Iterable[str]) -> str | None:
    """The last status of a resource in the stack; None if the stack did not create it."""
    return next((status for name in ids if (status := stack.made.get((resource_type, name))) is not None), None)


def _maker(stacks: Iterable[AuditedStack], resource_type: str, ids: Iterable[str]) -> AuditedStack | None:
    wanted = tuple(ids)
    return next((stack for stack in stacks if resource_status(stack, resource_type, wanted) is not None), None)

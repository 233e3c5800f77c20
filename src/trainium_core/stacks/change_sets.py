"""The changes in a change set, as CloudFormation describes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class ChangedProperty:
    """The values before and after the change, as text; None if absent, or not yet known to CloudFormation.

    Attributes:
        certain: Whether it changes regardless of the resources that it refers to.
        causes: Logical IDs of the resources whose change may change it.
        recreates: Whether its change replaces the resource, or may.
    """

    before: str | None = None
    after: str | None = None
    certain: bool = False
    causes: frozenset[str] = frozenset()
    recreates: bool = False


@dataclass(frozen=True, kw_only=True)
class ResourceChange:
    """A change of one resource. `action` and `replacement` are CloudFormation's terms."""

    kind: str
    action: str
    logical_id: str = ""
    physical_id: str = ""
    replacement: str = "False"
    properties: Mapping[str, ChangedProperty] = field(default_factory=dict[str, ChangedProperty])


class ChangeSets(Protocol):
    """Methods raise UnavailableError if AWS does not answer."""

    def physical_ids(self, stack: str, kind: str) -> Sequence[str]:
        """Physical IDs of a stack's resources of one type; empty without the stack."""
        ...

    def changes(self, stack: str, change_set: str) -> Sequence[ResourceChange]:
        """Empty if the change set does not exist: then nothing changes."""
        ...

    def delete_change_set(self, stack: str, change_set: str) -> None:
        """Raises RequestRefusedError."""
        ...

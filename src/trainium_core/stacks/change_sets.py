"""What a change set of a stack would do, as CloudFormation describes it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class ChangedProperty:
    """Its values before and afterwards, as text; None where there is none, or as long as CloudFormation does not know.

    certain: whether it changes whatever becomes of the resources that it refers to. causes: logical ids of those whose
    change it may follow. recreates: whether its change replaces the resource, or may.
    """

    before: str | None = None
    after: str | None = None
    certain: bool = False
    causes: frozenset[str] = frozenset()
    recreates: bool = False


@dataclass(frozen=True, kw_only=True)
class ResourceChange:
    """A change of one resource. `action` and `replacement` are CloudFormation's words; `properties` are by name."""

    kind: str
    action: str
    logical_id: str = ""
    physical_id: str = ""
    replacement: str = "False"
    properties: Mapping[str, ChangedProperty] = field(default_factory=dict[str, ChangedProperty])


class ChangeSets(Protocol):
    """Each method raises UnavailableError without an answer."""

    def physical_ids(self, stack: str, kind: str) -> Sequence[str]:
        """Of a stack's resources of one type; none where there is no such stack."""
        ...

    def changes(self, stack: str, change_set: str) -> Sequence[ResourceChange]:
        """Nothing where there is no such change set: then nothing changes."""
        ...

    def delete_change_set(self, stack: str, change_set: str) -> None:
        """Raises RequestRefusedError."""
        ...

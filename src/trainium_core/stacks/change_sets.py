"""Change sets and their changes, as CloudFormation describes them."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class ChangedProperty:
    """A property that changes, or may change.

    Attributes:
        before: Value before the change, as text; None if absent or unknown.
        after: Value after the change, as text; None if absent, or unknown until the update.
        certain: Whether the property changes regardless of the resources to which it refers.
        causes: Logical IDs of the resources whose change may change the property.
        recreates: Whether the change of the property replaces, or may replace, the resource.
    """

    before: str | None = None
    after: str | None = None
    certain: bool = False
    causes: frozenset[str] = frozenset()
    recreates: bool = False


@dataclass(frozen=True, kw_only=True)
class ResourceChange:
    """A change of one resource.

    Attributes:
        kind: Resource type.
        action: CloudFormation's term, such as Modify.
        logical_id: Logical ID of the resource.
        physical_id: Physical ID of the resource; empty for a new resource.
        replacement: CloudFormation's term: True, False or Conditional.
        properties: The properties that change or may change, by name.
    """

    kind: str
    action: str
    logical_id: str = ""
    physical_id: str = ""
    replacement: str = "False"
    properties: Mapping[str, ChangedProperty] = field(default_factory=dict[str, ChangedProperty])

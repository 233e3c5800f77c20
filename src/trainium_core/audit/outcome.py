"""The result of an audit."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal

from trainium_core.audit.resource import Found
from trainium_core.audit.stack_record import StackRecord
from trainium_core.identity.caller import Identity

Group = Literal["left", "kept", "shared"]
"""Left behind or still in use; retained by the stack; part of the CDK bootstrap, which other apps share."""

Verdict = Literal["nothing left", "something left", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Audited(Found):
    """`usd_per_month`: None if a price is unknown."""

    group: Group
    usd_per_month: Decimal | None


@dataclass(frozen=True, kw_only=True)
class NotRead:
    """Something that could not be read, and why. Names the permission if one is missing."""

    what: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Audit:
    """`calls`: number of requests by operation. `prices_unavailable`: reasons why AWS's prices are unavailable."""

    cluster: str
    region: str
    identity: Identity
    time: datetime
    stacks: tuple[StackRecord, ...]
    resources: tuple[Audited, ...]
    not_read: tuple[NotRead, ...]
    kinds: tuple[str, ...]
    calls: Mapping[str, int]
    prices_unavailable: tuple[str, ...] = ()

    def of(self, group: Group) -> tuple[Audited, ...]:
        return tuple(resource for resource in self.resources if resource.group == group)

    @property
    def verdict(self) -> Verdict:
        """Any remaining resource decides. Without one, the result is unknown unless everything was read."""
        if self.of("left"):
            return "something left"
        return "unknown" if self.not_read else "nothing left"

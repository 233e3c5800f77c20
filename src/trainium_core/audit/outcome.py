"""What an audit came to."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal

from trainium_core.audit.resource import Found
from trainium_core.audit.stack_record import StackRecord
from trainium_core.identity.caller import Identity

Group = Literal["left", "kept", "shared"]
"""Left behind (or still in use); kept because the stack retains it; of the CDK's bootstrap, which other apps share."""

Verdict = Literal["nothing left", "something left", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Audited(Found):
    """`usd_per_month` is None where a price is not known."""

    group: Group
    usd_per_month: Decimal | None


@dataclass(frozen=True, kw_only=True)
class NotRead:
    """Something that could not be looked at, and why, with the permission if one is missing."""

    what: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Audit:
    """`calls`: how often each call was made. `prices_unavailable`: each reason why a price of AWS is unavailable."""

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
        return tuple(one for one in self.resources if one.group == group)

    @property
    def verdict(self) -> Verdict:
        """What is left is certain, whatever could not be read; without any of it, all must have been readable."""
        if self.of("left"):
            return "something left"
        return "unknown" if self.not_read else "nothing left"

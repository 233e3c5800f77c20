"""The result of an audit."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal

from trainium_core.audit.resource import Found
from trainium_core.audit.stack_record import AuditedStack
from trainium_core.aws.identity import Identity

Group = Literal["left", "kept", "shared"]
"""left: left behind, or still in use. kept: retained by the stack, or a kind that users keep. shared: part of the CDK
bootstrap, which other apps use too."""

Verdict = Literal["nothing left", "something left", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Audited(Found):
    """A resource with its group and price.

    Attributes:
        group: Its group.
        usd_per_month: US dollars, before tax and discounts; None if a price is unknown.
    """

    group: Group
    usd_per_month: Decimal | None


@dataclass(frozen=True, kw_only=True)
class NotRead:
    """What could not be read, and why. The reason names the permission if one is missing."""

    what: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The result of an audit.

    Attributes:
        stacks: The stacks of the cluster, including deleted ones.
        not_read: What could not be read.
        kinds: The kinds whose listing was called.
        calls: Number of requests by operation.
        prices_unavailable: Reasons why AWS's prices are unavailable.
    """

    cluster: str
    region: str
    identity: Identity
    time: datetime
    stacks: tuple[AuditedStack, ...]
    resources: tuple[Audited, ...]
    not_read: tuple[NotRead, ...]
    kinds: tuple[str, ...]
    calls: Mapping[str, int]
    prices_unavailable: tuple[str, ...] = ()

    def of(self, group: Group) -> tuple[Audited, ...]:
        return tuple(resource for resource in self.resources if resource.group == group)

    @property
    def verdict(self) -> Verdict:
        """`something left` if any resource is left; otherwise `unknown` if a call failed."""
        if self.of("left"):
            return "something left"
        return "unknown" if self.not_read else "nothing left"

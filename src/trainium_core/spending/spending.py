"""The costs of a cluster: billed, estimated, and per hour."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from trainium_core.audit.outcome import Audit
from trainium_core.costs.estimate import Total


@dataclass(frozen=True, kw_only=True)
class SpendingLine:
    """An amount.

    Attributes:
        usd: US dollars; None if unknown.
        how: The basis of the amount, or why it is unknown.
    """

    what: str
    usd: Decimal | None
    how: str


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """The expected costs at the end, if the cost per hour does not change.

    Attributes:
        ends: The end of the pilot.
        hours: The hours until then.
        total: The costs until now and in these hours.
    """

    ends: datetime
    hours: Decimal
    total: Total


@dataclass(frozen=True, kw_only=True)
class Spending:
    """The costs of a cluster.

    Attributes:
        audit: The existing resources.
        since: Creation of the first known stack.
        billed: Billed US dollars by service; None if they are unknown or were not requested.
        not_billed: Why `billed` is None; otherwise empty.
        estimated: Estimated costs until now.
        now: Current costs per hour.
        forecast: None if the plan has no end, or no stack exists.
    """

    audit: Audit
    since: datetime | None
    billed: Mapping[str, Decimal] | None
    not_billed: str
    estimated: tuple[SpendingLine, ...]
    now: tuple[SpendingLine, ...]
    forecast: Forecast | None

    @property
    def billed_total(self) -> Decimal | None:
        return None if self.billed is None else sum(self.billed.values(), Decimal(0))

    @property
    def estimated_total(self) -> Total:
        return total_cost(self.estimated, also_unknown=len(self.audit.not_read))

    @property
    def hourly(self) -> Total:
        return total_cost(self.now, also_unknown=len(self.audit.not_read))

    @property
    def is_complete(self) -> bool:
        """Whether every estimated and hourly amount is known and everything was read. Billed amounts do not count."""
        return not (self.estimated_total.unknown or self.hourly.unknown)


def total_cost(lines: tuple[SpendingLine, ...], *, also_unknown: int) -> Total:
    """The sum of lines.

    Args:
        lines: The lines.
        also_unknown: The number of failed calls; the resources that they would have returned may cost something.
    """
    known = [line.usd for line in lines if line.usd is not None]
    return Total(usd=sum(known, Decimal(0)), unknown=len(lines) - len(known) + also_unknown)

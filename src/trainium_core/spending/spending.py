"""The money of a cluster: what was billed, what it is estimated to have cost, what it costs by the hour."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from trainium_core.audit.outcome import Audit
from trainium_core.costs.estimate import Total


@dataclass(frozen=True, kw_only=True)
class Line:
    """US dollars; None where they are not known. `how` says what the amount was got from."""

    what: str
    usd: Decimal | None
    how: str


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What will have been spent at the end, if all stays as it is now."""

    ends: datetime
    hours: Decimal
    total: Total


@dataclass(frozen=True, kw_only=True)
class Spending:
    """`billed` is None where Cost Explorer has nothing, and `not_billed` says why.

    `since`: when the first stack was made that is remembered. `forecast`: None for a plan without an end.
    """

    audit: Audit
    since: datetime | None
    billed: Mapping[str, Decimal] | None
    not_billed: str
    estimated: tuple[Line, ...]
    now: tuple[Line, ...]
    forecast: Forecast | None

    @property
    def billed_total(self) -> Decimal | None:
        return None if self.billed is None else sum(self.billed.values(), Decimal(0))

    @property
    def estimated_total(self) -> Total:
        return total_of(self.estimated, also_unknown=len(self.audit.not_read))

    @property
    def hourly(self) -> Total:
        return total_of(self.now, also_unknown=len(self.audit.not_read))

    @property
    def is_complete(self) -> bool:
        """Whether every amount is known and everything could be read."""
        return not (self.estimated_total.unknown or self.hourly.unknown)


def total_of(lines: tuple[Line, ...], *, also_unknown: int) -> Total:
    """`also_unknown`: how much could not be read at all, and may cost something."""
    known = [line.usd for line in lines if line.usd is not None]
    return Total(usd=sum(known, Decimal(0)), unknown=len(lines) - len(known) + also_unknown)

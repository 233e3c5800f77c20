"""The cost of a plan: per hour with running nodes, per month without nodes, and for a pilot."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal

from trainium_core.costs.items import CostItem
from trainium_core.engines.registry import CLUSTER, ENGINES, plan_engines
from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_core.prices.price import CAPACITY_BLOCK, ON_DEMAND, Price, Prices, products
from trainium_core.prices.quotes import Quotes, quotes

PILOT_HOURS = 8
"""Default length of a pilot: a working day."""

_BY_THE_MONTH = ("GB-month", "GiBps-mo", "alarm-month", "metric-month", "dashboard-month")
_ZERO = Decimal(0)
_CENT = Decimal("0.01")


@dataclass(frozen=True, kw_only=True)
class CostLine(CostItem):
    """An item with its price, if known. Amounts are US dollars; None if the price is unknown."""

    price: Price | None

    @property
    def unit(self) -> str:
        return products()[self.item.product].unit

    @property
    def unit_usd(self) -> Decimal | None:
        return None if self.price is None else self.price.usd

    @property
    def running_hour(self) -> Decimal | None:
        """The hourly cost with all nodes running; 0 for items that are billed by use."""
        if self.billed == "by use":
            return _ZERO
        if self.unit_usd is None:
            return None
        hours = Decimal(facts()["billing"]["hours_per_month"]) if self.unit in _BY_THE_MONTH else Decimal(1)
        return self.quantity * self.unit_usd / hours

    @property
    def asleep_month(self) -> Decimal | None:
        """The monthly cost without nodes. A Capacity Block is prepaid, so its amount is 0."""
        if self.billed != "always":
            return _ZERO
        hourly = self.running_hour
        return None if hourly is None else hourly * facts()["billing"]["hours_per_month"]

    def pilot(self, hours: Decimal) -> Decimal | None:
        """The cost of a number of hours with all nodes running."""
        hourly = self.running_hour
        return None if hourly is None else hourly * hours


@dataclass(frozen=True, kw_only=True)
class Total:
    """The sum of the known amounts in US dollars, and the number of unknown amounts."""

    usd: Decimal
    unknown: int

    def __str__(self) -> str:
        if not self.unknown:
            return dollars(self.usd)
        amounts = f"{self.unknown} amount{'s' if self.unknown > 1 else ''} unknown"
        return f"at least {dollars(self.usd)}, {amounts}" if self.usd else f"unknown, {amounts}"


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The lines and totals of a plan.

    Attributes:
        hours: The length of the pilot.
        unavailable: Reasons why AWS's prices are unavailable.
    """

    lines: tuple[CostLine, ...]
    hours: Decimal
    unavailable: tuple[str, ...] = ()

    @property
    def running_hour(self) -> Total:
        return _total(line.running_hour for line in self.lines)

    @property
    def asleep_month(self) -> Total:
        return _total(line.asleep_month for line in self.lines)

    @property
    def pilot(self) -> Total:
        return _total(line.pilot(self.hours) for line in self.lines)

    @property
    def unknown(self) -> tuple[CostLine, ...]:
        """The lines without a known price, whether or not they are billed by use."""
        return tuple(line for line in self.lines if line.unit_usd is None)


def cluster_cost_items(plan: Plan) -> tuple[CostItem, ...]:
    """The items of the cluster's stack, even if trn:stacks does not include it."""
    return tuple(CLUSTER.cost_items(plan))


def stack_cost_items(plan: Plan) -> tuple[CostItem, ...]:
    """The items of every stack of trn:stacks. Equal items that are billed by use are listed once."""
    items = [item for key in plan.stacks for item in ENGINES[key].cost_items(plan)]
    return tuple(item for index, item in enumerate(items) if item.billed != "by use" or item not in items[:index])


def stack_cost_notes(plan: Plan) -> Iterator[str]:
    """Notes on the estimate of the stacks."""
    for engine in plan_engines(plan):
        yield from engine.cost_notes(plan)


def estimate(
    plan: Plan,
    *,
    hours: Decimal = Decimal(PILOT_HOURS),
    aws: Prices | None,
    items: Callable[[Plan], Sequence[CostItem]] = cluster_cost_items,
    today: date | None = None,
) -> Estimate:
    """Estimate the cost of a plan. The prices of trn:prices take precedence over AWS's, and AWS's over the snapshot's.

    Args:
        plan: The plan.
        hours: The length of the pilot.
        aws: AWS's prices; None to use only the plan's and the snapshot's.
        items: Returns the billed items of the plan. Default: those of the cluster's stack.
        today: The day on which prices of the snapshot have to be current; None for the current day.
    """
    cost_items = items(plan)
    quoted = quotes((item.item for item in cost_items), own=plan.prices, aws=aws, today=today)
    return Estimate(lines=cost_lines(cost_items, quoted), hours=hours, unavailable=quoted.unavailable)


def cost_lines(items: Iterable[CostItem], quoted: Quotes) -> tuple[CostLine, ...]:
    return tuple(CostLine(**vars(item), price=quoted.prices.get(item.item)) for item in items)


def sales_warning(plan: Plan, estimated: Estimate) -> str | None:
    """A warning if AWS lists no on-demand price, because it may not sell the type on demand."""
    if plan.capacity != ON_DEMAND:
        return None
    price = next((line.price for line in estimated.lines if line.item.product == ON_DEMAND), None)
    if price is None or price.usd is not None:
        return None
    in_blocks = CAPACITY_BLOCK in plan.type.usage_classes
    sold = "AWS seems to sell it only as Capacity Blocks" if in_blocks else "AWS may not sell it"
    return (
        f"AWS lists no on-demand price for {plan.instance_type} in {plan.region} "
        f"({price.date}, {price.source}): {sold}, and launches may fail"
    )


def dollars(usd: Decimal) -> str:
    """An amount, rounded to the cent; "< $0.01" between zero and one cent."""
    return "< $0.01" if 0 < usd < _CENT else f"${usd.quantize(_CENT, ROUND_HALF_UP):,}"


def _total(amounts: Iterable[Decimal | None]) -> Total:
    known = list(amounts)
    return Total(usd=sum((usd for usd in known if usd is not None), _ZERO), unknown=known.count(None))

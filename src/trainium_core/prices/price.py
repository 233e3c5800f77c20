"""What a price is, and what it is for."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from typing import Any, Literal, Protocol, cast

from trainium_core.facts import DATA


@dataclass(frozen=True, kw_only=True)
class Product:
    """Something with a price for each `unit`: an hour, a GB, a GB-month, a GiBps-mo or an alarm-month.

    One price for each instance type, or one for all.

    `service`, `usage_type` and `filters` ask the Price List API for it, with {region} and {instance_type} to be filled
    in; without a service the Price List does not hold it, or nobody knows how to ask.
    """

    name: str
    unit: str
    of_instance_type: bool = False
    service: str | None = None
    usage_type: str = ""
    filters: Mapping[str, str] = field(default_factory=dict[str, str])


@cache
def products() -> Mapping[str, Product]:
    """Every product by its key, as the file has them."""
    document: Mapping[str, Any] = tomllib.loads((DATA / "price_products.toml").read_text(encoding="utf-8"))
    return {key: Product(**cast(dict[str, Any], row)) for key, row in document.items() if isinstance(row, dict)}


ON_DEMAND = "on-demand"
SPOT = "spot"
CAPACITY_BLOCK = "capacity-block"

Origin = Literal["yours", "AWS", "snapshot"]


@dataclass(frozen=True, kw_only=True)
class PricedItem:
    """What a price is for: a product of price_products in a region; of a type, and in a zone, where that matters."""

    product: str
    region: str
    instance_type: str = ""
    zone_id: str = ""


@dataclass(frozen=True, kw_only=True)
class Price:
    """US dollars for one unit of a product, before tax and discounts, as a source stated it on a day (ISO date).

    `usd` is None where the source says that AWS lists no such price. `confidence` is what the source is worth.
    """

    usd: Decimal | None
    source: str
    date: str
    confidence: str = ""
    origin: Origin


class Prices(Protocol):
    """What AWS asks for things today."""

    def price(self, item: PricedItem) -> Price:
        """Raises UnavailableError without an answer."""
        ...


class PriceTable(Mapping[PricedItem, Price]):
    """Prices by what they are for, as a file has them."""

    def __init__(self, prices: Mapping[PricedItem, Price]) -> None:
        self._prices = prices

    def __getitem__(self, item: PricedItem) -> Price:
        return self._prices[item]

    def __iter__(self) -> Iterator[PricedItem]:
        return iter(self._prices)

    def __len__(self) -> int:
        return len(self._prices)

    def best_for(self, item: PricedItem) -> Price | None:
        """The price of the item, else the one of all zones; where its zone is not known, that of the dearest zone."""
        if item.zone_id:
            return self._prices.get(item) or self._prices.get(_without_zone(item))
        if item in self._prices:
            return self._prices[item]
        of_a_zone = [price for key, price in self._prices.items() if _without_zone(key) == item]
        return max(of_a_zone, key=lambda price: price.usd or Decimal(0), default=None)


def no_prices() -> PriceTable:
    return PriceTable({})


def _without_zone(item: PricedItem) -> PricedItem:
    return PricedItem(product=item.product, region=item.region, instance_type=item.instance_type)

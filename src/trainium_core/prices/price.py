"""Prices, and the products that they are for."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cache
from typing import Any, Literal, Protocol, cast

from trainium_core.facts import DATA


@dataclass(frozen=True, kw_only=True)
class Product:
    """A product with a price per unit.

    `service`, `usage_type` and `filters` form the Price List query, with {region} and {instance_type} as placeholders.

    Attributes:
        unit: An hour, a GB, a GB-month, a GiBps-mo or an alarm-month.
        of_instance_type: Whether it has one price per instance type, not one for all.
        service: None if the Price List has no price, or if the query is unknown.
    """

    name: str
    unit: str
    of_instance_type: bool = False
    service: str | None = None
    usage_type: str = ""
    filters: Mapping[str, str] = field(default_factory=dict[str, str])


@cache
def products() -> Mapping[str, Product]:
    """Every product by its key, as in the file."""
    document: Mapping[str, Any] = tomllib.loads((DATA / "price_products.toml").read_text(encoding="utf-8"))
    return {key: Product(**cast(dict[str, Any], row)) for key, row in document.items() if isinstance(row, dict)}


ON_DEMAND = "on-demand"
SPOT = "spot"
CAPACITY_BLOCK = "capacity-block"

Origin = Literal["yours", "AWS", "snapshot"]


@dataclass(frozen=True, kw_only=True)
class PricedItem:
    """The key of a price: a product in a region, and its instance type and zone if they matter."""

    product: str
    region: str
    instance_type: str = ""
    zone_id: str = ""


@dataclass(frozen=True, kw_only=True)
class Price:
    """US dollars for one unit of a product, before tax and discounts, as stated by a source on a day (ISO date).

    `usd`: None if the source states that AWS lists no such price. `confidence`: reliability of the source.
    """

    usd: Decimal | None
    source: str
    date: str
    confidence: str = ""
    origin: Origin


class Prices(Protocol):
    """AWS's current prices."""

    def price(self, item: PricedItem) -> Price:
        """Raises UnavailableError if AWS does not answer."""
        ...


PriceTable = Mapping[PricedItem, Price]
"""Prices by item, as in a file."""


def best_price(prices: PriceTable, item: PricedItem) -> Price | None:
    """The price of the item, else the one for all zones. If its zone is unknown, the price of the dearest zone."""
    if item in prices:
        return prices[item]
    if item.zone_id:
        return prices.get(replace(item, zone_id=""))
    of_zones = [price for key, price in prices.items() if replace(key, zone_id="") == item]
    return max(of_zones, key=lambda price: price.usd or Decimal(0), default=None)

"""Prices, and the products that they are for."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import Decimal
from functools import cache
from typing import Any, Literal, Protocol, cast

from trainium_core.facts import DATA


@dataclass(frozen=True, kw_only=True)
class Product:
    """A product with a price per unit.

    `service`, `usage_type` and `filters` form the Price List query, with {region} and {instance_type} as placeholders.

    Attributes:
        name: The product in words.
        unit: Such as hour, GB or GB-month.
        of_instance_type: Whether each instance type has its own price.
        service: The service code; None if the Price List has no price, or if the query is unknown.
    """

    name: str
    unit: str
    of_instance_type: bool = False
    service: str | None = None
    usage_type: str = ""
    filters: Mapping[str, str] = field(default_factory=dict[str, str])


@cache
def products() -> Mapping[str, Product]:
    """All products by their keys in price_products.toml."""
    document: Mapping[str, Any] = tomllib.loads((DATA / "price_products.toml").read_text(encoding="utf-8"))
    return {key: Product(**cast(dict[str, Any], row)) for key, row in document.items() if isinstance(row, dict)}


ON_DEMAND = "on-demand"
SPOT = "spot"
CAPACITY_BLOCK = "capacity-block"

Origin = Literal["yours", "AWS", "snapshot"]


@dataclass(frozen=True, kw_only=True)
class PricedItem:
    """The key of a price: a product in a region, and the instance type and zone if the price depends on them."""

    product: str
    region: str
    instance_type: str = ""
    zone_id: str = ""


@dataclass(frozen=True, kw_only=True)
class Price:
    """The price of one unit of a product, before tax and discounts.

    Attributes:
        usd: US dollars; None if the source states that AWS lists no price, or if the price is out of date.
        was: US dollars of a price that is out of date; see `current`.
        source: Where the price is from.
        date: When the source stated it, as an ISO date.
        confidence: A note on the reliability of the price.
        origin: Whether the price is from the user's file, AWS or the snapshot.
    """

    usd: Decimal | None
    source: str
    date: str
    confidence: str = ""
    origin: Origin
    was: Decimal | None = None


MAX_AGE = timedelta(days=180)
"""Age from which a price that AWS changes often is out of date. AWS updates those of Capacity Blocks each quarter."""

_CHANGING = (SPOT, CAPACITY_BLOCK)


def current(item: PricedItem, price: Price, today: date) -> Price:
    """The price, without its amount if it is a spot or Capacity Block price of the snapshot that is out of date."""
    is_old = today - date.fromisoformat(price.date) > MAX_AGE
    if price.origin == "snapshot" and item.product in _CHANGING and price.usd is not None and is_old:
        return replace(price, usd=None, was=price.usd)
    return price


class Prices(Protocol):
    """AWS's current prices."""

    def price(self, item: PricedItem) -> Price:
        """The current price of an item. Its `usd` is None if AWS lists no price.

        Raises:
            UnavailableError: A request failed, the answer is not one price, or this package has no query for the
                product.
        """
        ...


PriceTable = Mapping[PricedItem, Price]
"""Prices by item, as in a file."""


def best_price(prices: PriceTable, item: PricedItem) -> Price | None:
    """The price of the item, else its price for all zones, or for an item without a zone the highest of its zones."""
    if item in prices:
        return prices[item]
    if item.zone_id:
        return prices.get(replace(item, zone_id=""))
    of_zones = [price for key, price in prices.items() if replace(key, zone_id="") == item]
    return max(of_zones, key=lambda price: price.usd or Decimal(0), default=None)

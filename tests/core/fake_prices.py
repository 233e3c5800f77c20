"""Prices in memory: one dollar each unless a test sets them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Self

from trainium_core.prices.price import Price, PricedItem
from trainium_runtime.errors import UnavailableError

TODAY = "2026-11-21"


@dataclass(kw_only=True)
class FakePrices:
    """AWS's prices.

    Attributes:
        unavailable: If it contains "price", reads of prices fail.
        usd: Prices by product; None for a product that AWS does not list.
    """

    unavailable: Collection[str] = ()
    usd: Mapping[str, Decimal | None] = field(default_factory=dict[str, Decimal | None])

    @property
    def prices(self) -> Self:
        return self

    def price(self, item: PricedItem) -> Price:
        if "price" in self.unavailable:
            raise UnavailableError("no answer about price")
        return Price(usd=self.usd.get(item.product, Decimal(1)), source="AWS as faked", date=TODAY, origin="AWS")

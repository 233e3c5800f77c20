"""What AWS asks for things today."""

from typing import Protocol

from trainium_core.prices import Price, PricedItem


class Prices(Protocol):
    def price(self, item: PricedItem) -> Price: ...

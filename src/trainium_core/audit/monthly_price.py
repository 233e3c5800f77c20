"""The monthly cost of existing resources. If the price of a part is unknown, so is the cost: it is not 0."""

from collections.abc import Iterable
from decimal import Decimal

from trainium_core.audit.resource import Charge, ChargedItem, Resource
from trainium_core.facts import facts
from trainium_core.prices.price import PricedItem, products
from trainium_core.prices.quotes import Quotes


def priced_item(item: ChargedItem, region: str) -> PricedItem:
    return PricedItem(product=item.product, region=region, instance_type=item.instance_type)


def priced_items(resources: Iterable[Resource], region: str) -> tuple[PricedItem, ...]:
    """The prices that the charges of the resources need."""
    return tuple(priced_item(item, region) for resource in resources for item in resource.charge.items)


def hours_per_month() -> int:
    return facts()["billing"]["hours_per_month"]


def per_month(charge: Charge, quotes: Quotes, region: str) -> Decimal | None:
    """US dollars, before tax and discounts; None if the price of a part is unknown."""
    if charge.unpriced:
        return None
    amounts = [_per_month(item, quotes, region) for item in charge.items]
    known = [amount for amount in amounts if amount is not None]
    return sum(known, Decimal(0)) if len(known) == len(amounts) else None


def _per_month(item: ChargedItem, quotes: Quotes, region: str) -> Decimal | None:
    price = quotes.prices.get(priced_item(item, region))
    if price is None or price.usd is None:
        return None
    units = hours_per_month() if products()[item.product].unit == "hour" else 1
    return item.quantity * price.usd * units

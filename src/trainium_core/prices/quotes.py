"""Selects the source of each price: the user's file, then AWS, then the snapshot in this package."""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial

from trainium_core.prices.file import snapshot_prices
from trainium_core.prices.price import Price, PricedItem, Prices, PriceTable, best_price, current
from trainium_runtime.errors import UnavailableError


@dataclass(frozen=True, kw_only=True)
class Quotes:
    """The prices of items.

    Attributes:
        prices: The prices that a source states, including that AWS lists none.
        unavailable: Reasons why prices of AWS are unavailable.
    """

    prices: Mapping[PricedItem, Price]
    unavailable: tuple[str, ...] = ()


def quotes(items: Iterable[PricedItem], *, own: PriceTable, aws: Prices | None, today: date | None = None) -> Quotes:
    """Look up the price of every item: in the user's file, else at AWS, else in the snapshot.

    Args:
        items: The items.
        own: The user's prices.
        aws: AWS's prices, read concurrently; None to skip them.
        today: The day on which prices of the snapshot have to be current; None for the current day.
    """
    unique = tuple(dict.fromkeys(items))
    prices = {item: price for item in unique if (price := best_price(own, item)) is not None}
    missing = [item for item in unique if item not in prices] if aws is not None else []
    unavailable: dict[str, None] = {}
    if aws is not None and missing:
        with ThreadPoolExecutor(len(missing)) as threads:
            for item, answer in zip(missing, threads.map(partial(_price_or_error, aws), missing), strict=True):
                if isinstance(answer, Price):
                    prices[item] = answer
                else:
                    unavailable[str(answer)] = None
    for item in unique:
        if item not in prices and (price := best_price(snapshot_prices(), item)) is not None:
            prices[item] = current(item, price, today or datetime.now(UTC).date())
    return Quotes(prices=prices, unavailable=tuple(unavailable))


def _price_or_error(aws: Prices, item: PricedItem) -> Price | UnavailableError:
    try:
        return aws.price(item)
    except UnavailableError as error:
        return error

"""Reads what the AWS Price List API answers: each product a JSON document in a string, its prices by tiers of use."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from trainium_runtime.errors import UnavailableError


@dataclass(frozen=True, kw_only=True)
class ListPrice:
    """What one unit costs, and since which day (ISO date)."""

    usd: Decimal
    since: str


def list_prices(documents: Iterable[str], usage_type: str) -> set[ListPrice]:
    """The on-demand prices of the products with that usage type, each the one of the lowest tier of use.

    A price of zero is none: AWS lists so what is paid for elsewhere. Raises UnavailableError for a document that cannot
    be read.
    """
    try:
        products = [json.loads(document) for document in documents]
        found = [price for product in products if _is_of(product, usage_type) for price in _first_tier(product)]
    except (ValueError, LookupError, TypeError, AttributeError, InvalidOperation) as error:
        raise UnavailableError(f"the AWS Price List is not in the form that is known: {error!r}") from error
    return {price for price in found if price.usd > 0}


def _is_of(product: Any, usage_type: str) -> bool:
    """Whether it is that usage type, with the prefix of its region or without; other types may end alike."""
    found = product["product"]["attributes"]["usagetype"]
    return usage_type in (found, found.partition("-")[2])


def _first_tier(product: Any) -> list[ListPrice]:
    return [
        ListPrice(usd=Decimal(dimension["pricePerUnit"]["USD"]), since=term["effectiveDate"][:10])
        for term in product["terms"].get("OnDemand", {}).values()
        for dimension in term["priceDimensions"].values()
        if dimension.get("beginRange", "0") == "0"
    ]

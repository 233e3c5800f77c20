"""Reads the AWS Price List API, and spot prices from EC2."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from trainium_core.prices.price import SPOT, Price, PricedItem, Product, products
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService, is_aws
from trainium_runtime.errors import UnavailableError


@dataclass(frozen=True, kw_only=True)
class ListPrice:
    """The price of one unit, and its effective date (ISO date)."""

    usd: Decimal
    since: str


def list_prices(documents: Iterable[str], usage_type: str) -> set[ListPrice]:
    """The on-demand prices of products with the usage type, each for the lowest tier of use.

    Zero does not count as a price: AWS lists it for usage that is billed elsewhere.

    Raises:
        UnavailableError: A document has an unknown format.
    """
    try:
        products = [json.loads(document) for document in documents]
        prices = [price for product in products if _matches_item(product, usage_type) for price in _first_tier(product)]
    except (ValueError, LookupError, TypeError, AttributeError, InvalidOperation) as error:
        raise UnavailableError(f"the AWS Price List has an unknown format: {error!r}") from error
    return {price for price in prices if price.usd > 0}


def _matches_item(product: Any, usage_type: str) -> bool:
    """Whether a product has the usage type, with or without the prefix of its region."""
    actual = product["product"]["attributes"]["usagetype"]
    return usage_type in (actual, actual.partition("-")[2])


def _first_tier(product: Any) -> list[ListPrice]:
    return [
        ListPrice(usd=Decimal(dimension["pricePerUnit"]["USD"]), since=term["effectiveDate"][:10])
        for term in product["terms"].get("OnDemand", {}).values()
        for dimension in term["priceDimensions"].values()
        if dimension.get("beginRange", "0") == "0"
    ]


PRICE_LIST_REGION = "us-east-1"
"""The Price List API has endpoints in a few regions, each for all regions."""


class AwsPrices(AwsService):
    """Implements trainium_core.prices.price.Prices."""

    def price(self, item: PricedItem) -> Price:
        if item.product == SPOT:
            return self._spot_price(item)
        product = products()[item.product]
        if product.service is None:
            raise UnavailableError(f"this package has no Price List query for: {product.name}")
        return self._list_price(item, product)

    def _list_price(self, item: PricedItem, product: Product) -> Price:
        client = _aws_prices(self._clients.client("pricing", PRICE_LIST_REGION))
        values = {"instance_type": item.instance_type, "region": item.region}
        filters = [
            {"Type": "TERM_MATCH", "Field": field, "Value": value.format_map(values)}
            for field, value in product.filters.items()
        ]
        with read_errors("pricing:GetProducts"):
            pages = client.get_paginator("get_products").paginate(ServiceCode=product.service, Filters=filters)
            documents = [document for page in pages for document in page["PriceList"]]
        prices = list_prices(documents, product.usage_type.format_map(values))
        if len({price.usd for price in prices}) > 1:
            raise UnavailableError(f"the AWS Price List has several prices of a {product.name} in {item.region}")
        if prices:
            (since, usd) = max((price.since, price.usd) for price in prices)
            return _price(usd, "AWS Price List API", f"in effect since {since}")
        if product.of_instance_type:
            return _price(None, "AWS Price List API: no such product")
        # The product is sold everywhere, so an empty result means that the query is wrong.
        raise UnavailableError(f"the AWS Price List returned no price of a {product.name} in {item.region}")

    def _spot_price(self, item: PricedItem) -> Price:
        client = _aws_prices(self.client("ec2"))
        arguments: dict[str, Any] = {
            "InstanceTypes": [item.instance_type],
            "ProductDescriptions": ["Linux/UNIX"],
            "StartTime": datetime.now(UTC),  # returns the current price in each zone
        }
        if item.zone_id:
            arguments["AvailabilityZoneId"] = item.zone_id
        with read_errors("ec2:DescribeSpotPriceHistory"):
            pages = client.get_paginator("describe_spot_price_history").paginate(**arguments)
            history = [entry for page in pages for entry in page["SpotPriceHistory"]]
        if not history:
            return _price(None, "EC2 spot price history: none")
        latest = {entry["AvailabilityZone"]: entry for entry in sorted(history, key=lambda entry: entry["Timestamp"])}
        highest = max(latest.values(), key=lambda entry: Decimal(entry["SpotPrice"]))
        where = highest.get("AvailabilityZoneId", highest["AvailabilityZone"])
        return _price(Decimal(highest["SpotPrice"]), "EC2 spot price history", f"in {where}; may change")


def _aws_prices(client: Any) -> Any:
    endpoint = str(client.meta.endpoint_url)
    if not is_aws(endpoint):
        raise UnavailableError(f"{endpoint} is not AWS, and has no prices")
    return client


def _price(usd: Decimal | None, source: str, confidence: str = "") -> Price:
    today = datetime.now(UTC).date().isoformat()
    return Price(usd=usd, source=source, date=today, confidence=confidence, origin="AWS")

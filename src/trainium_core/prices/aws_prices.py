"""Asks the AWS Price List API, and EC2 for spot prices."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from trainium_core.prices.price import SPOT, Price, PricedItem
from trainium_core.prices.price_list import list_prices
from trainium_core.prices.products import Product, products
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService, is_aws
from trainium_runtime.errors import UnavailableError

PRICE_LIST_REGION = "us-east-1"
"""The Price List API has an endpoint in few regions; each answers for all."""


class AwsPrices(AwsService):
    def price(self, item: PricedItem) -> Price:
        if item.product == SPOT:
            return self._spot_price(item)
        product = products()[item.product]
        if product.service is None:
            raise UnavailableError(f"the AWS Price List is not asked for the price of: {product.name}")
        return self._list_price(item, product)

    def _list_price(self, item: PricedItem, product: Product) -> Price:
        client = _of_aws(self._clients.client("pricing", PRICE_LIST_REGION))
        named = {"instance_type": item.instance_type, "region": item.region}
        filters = [
            {"Type": "TERM_MATCH", "Field": field, "Value": value.format_map(named)}
            for field, value in product.filters.items()
        ]
        with read_errors("pricing:GetProducts"):
            pages = client.get_paginator("get_products").paginate(ServiceCode=product.service, Filters=filters)
            documents = [document for page in pages for document in page["PriceList"]]
        found = list_prices(documents, product.usage_type.format_map(named))
        if len({price.usd for price in found}) > 1:
            raise UnavailableError(f"the AWS Price List has several prices of a {product.name} in {item.region}")
        if found:
            (since, usd) = max((price.since, price.usd) for price in found)
            return _price(usd, "AWS Price List API", f"in effect since {since}")
        if product.of_instance_type:
            return _price(None, "AWS Price List API: no such product")
        # It is sold everywhere, so that nothing was found means that it was asked for wrongly.
        raise UnavailableError(f"the AWS Price List answered with no price of a {product.name} in {item.region}")

    def _spot_price(self, item: PricedItem) -> Price:
        client = _of_aws(self.client("ec2"))
        arguments: dict[str, Any] = {
            "InstanceTypes": [item.instance_type],
            "ProductDescriptions": ["Linux/UNIX"],
            "StartTime": datetime.now(UTC),  # gives what is in effect now, in each zone
        }
        if item.zone_id:
            arguments["AvailabilityZoneId"] = item.zone_id
        with read_errors("ec2:DescribeSpotPriceHistory"):
            pages = client.get_paginator("describe_spot_price_history").paginate(**arguments)
            history = [entry for page in pages for entry in page["SpotPriceHistory"]]
        if not history:
            return _price(None, "EC2 spot price history: none")
        latest = {entry["AvailabilityZone"]: entry for entry in sorted(history, key=lambda entry: entry["Timestamp"])}
        dearest = max(latest.values(), key=lambda entry: Decimal(entry["SpotPrice"]))
        where = dearest.get("AvailabilityZoneId", dearest["AvailabilityZone"])
        return _price(Decimal(dearest["SpotPrice"]), "EC2 spot price history", f"in {where}; moves by the hour")


def _of_aws(client: Any) -> Any:
    endpoint = str(client.meta.endpoint_url)
    if not is_aws(endpoint):
        raise UnavailableError(f"{endpoint} is not AWS, and knows no prices")
    return client


def _price(usd: Decimal | None, source: str, confidence: str = "") -> Price:
    today = datetime.now(UTC).date().isoformat()
    return Price(usd=usd, source=source, date=today, confidence=confidence, origin="AWS")

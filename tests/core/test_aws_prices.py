"""Price calls. moto has no Price List and invents spot prices, so botocore's Stubber answers."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from botocore.stub import ANY, Stubber

from trainium_core.aws.prices import AwsPrices
from trainium_core.prices.price import PricedItem, products
from trainium_runtime.errors import UnavailableError

pytestmark = pytest.mark.usefixtures("made_up_credentials")

REGION = "us-west-2"
INSTANCE = PricedItem(product="on-demand", region=REGION, instance_type="trn1.32xlarge")
NAT = PricedItem(product="nat-gateway", region=REGION)
S3 = PricedItem(product="s3-storage", region=REGION)
SPOT = PricedItem(product="spot", region=REGION, instance_type="trn1.32xlarge", zone_id="usw2-az4")
Json = dict[str, Any]


def price_list() -> tuple[AwsPrices, Stubber]:
    prices = AwsPrices(REGION)
    stub = Stubber(prices._clients.client("pricing", "us-east-1"))
    stub.activate()
    return prices, stub


def ec2() -> tuple[AwsPrices, Stubber]:
    prices = AwsPrices(REGION)
    stub = Stubber(prices.client("ec2"))
    stub.activate()
    return prices, stub


def product(usage_type: str, tiers: Mapping[str, str], *, since: str = "2026-09-01") -> str:
    """A product as the Price List writes it; `tiers` maps the beginning of each tier to its price."""
    dimensions = {
        f"SKU.JRTCKXETXF.{begin}": {
            "unit": "Hrs",
            "endRange": "Inf",
            "description": f"${usd} per unit",
            "appliesTo": [],
            "rateCode": f"SKU.JRTCKXETXF.{begin}",
            "beginRange": begin,
            "pricePerUnit": {"USD": usd},
        }
        for begin, usd in tiers.items()
    }
    term = {
        "priceDimensions": dimensions,
        "sku": "SKU",
        "effectiveDate": f"{since}T00:00:00Z",
        "offerTermCode": "JRTCKXETXF",
        "termAttributes": {},
    }
    document = {
        "product": {"productFamily": "x", "attributes": {"usagetype": usage_type, "regionCode": REGION}, "sku": "SKU"},
        "serviceCode": "AmazonEC2",
        "terms": {"OnDemand": {"SKU.JRTCKXETXF": term}},
        "version": "20260901000000",
        "publicationDate": "2026-09-01T00:00:00Z",
    }
    return json.dumps(document)


def answer(*documents: str, **more: str) -> Json:
    return {"FormatVersion": "aws_v1", "PriceList": list(documents), **more}


def price_of(item: PricedItem, *documents: str) -> Decimal | None:
    prices, stub = price_list()
    stub.add_response("get_products", answer(*documents))
    return prices.price(item).usd


def test_instance_price_is_for_shared_linux_on_demand() -> None:
    prices, stub = price_list()
    wanted = {
        "instanceType": "trn1.32xlarge",
        "regionCode": REGION,
        "operatingSystem": "Linux",
        "preInstalledSw": "NA",
        "tenancy": "Shared",
        "capacitystatus": "Used",
        "marketoption": "OnDemand",
    }
    filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()]
    document = product("USW2-BoxUsage:trn1.32xlarge", {"0": "21.5000000000"})
    stub.add_response("get_products", answer(document), {"ServiceCode": "AmazonEC2", "Filters": filters})
    before = datetime.now(UTC)
    price = prices.price(INSTANCE)
    assert (price.usd, price.origin, price.source) == (Decimal("21.5"), "AWS", "AWS Price List API")
    assert price.confidence == "in effect since 2026-09-01"
    assert price.date in {at.date().isoformat() for at in (before, datetime.now(UTC))}


@pytest.mark.parametrize("key", [k for k, entry in products().items() if entry.service and not entry.of_instance_type])
def test_product_is_found_by_region_and_usage_type(key: str) -> None:
    prices, stub = price_list()
    entry = products()[key]
    stub.add_response(
        "get_products",
        answer(product(f"USW2-{entry.usage_type}", {"0": "0.5"})),
        {"ServiceCode": entry.service, "Filters": ANY},
    )
    assert prices.price(PricedItem(product=key, region=REGION)).usd == Decimal("0.5")
    # Dashboards have one price for all regions.
    assert key == "dashboard" or any("{region}" in value for value in entry.filters.values())


def test_usage_type_with_same_suffix_is_another_product() -> None:
    regional = product("USW2-RegionalNatGateway-Hours", {"0": "9"})
    assert price_of(NAT, regional, product("USW2-NatGateway-Hours", {"0": "0.045"})) == Decimal("0.045")


def test_price_of_first_tier_counts_in_any_order() -> None:
    tiers = {"512000": "0.021", "0": "0.023", "51200": "0.022"}
    assert price_of(S3, product("USW2-TimedStorage-ByteHrs", tiers)) == Decimal("0.023")


def test_missing_instance_product_means_no_listed_price() -> None:
    prices, stub = price_list()
    stub.add_response("get_products", answer())
    price = prices.price(INSTANCE)
    assert (price.usd, price.source) == (None, "AWS Price List API: no such product")


def test_missing_product_sold_everywhere_is_unavailable() -> None:
    with pytest.raises(UnavailableError, match="returned no price of a NAT gateway in us-west-2"):
        price_of(NAT)


def test_two_prices_for_one_product_are_unavailable() -> None:
    two = [product("USW2-NatGateway-Hours", {"0": usd}) for usd in ("0.045", "0.05")]
    with pytest.raises(UnavailableError, match="several prices of a NAT gateway"):
        price_of(NAT, *two)


def spot_entry(zone: str, usd: str, hour: int = 1) -> Json:
    return {
        "AvailabilityZone": f"{REGION}{zone}",
        "InstanceType": "trn1.32xlarge",
        "ProductDescription": "Linux/UNIX",
        "SpotPrice": usd,
        "Timestamp": datetime(2026, 11, 21, hour, tzinfo=UTC),
    }


def test_spot_price_is_the_latest_of_the_zone() -> None:
    prices, stub = ec2()
    parameters = {
        "InstanceTypes": ["trn1.32xlarge"],
        "ProductDescriptions": ["Linux/UNIX"],
        "StartTime": ANY,
        "AvailabilityZoneId": "usw2-az4",
    }
    history = [spot_entry("b", "2.5", 3), spot_entry("b", "9", 1)]
    stub.add_response("describe_spot_price_history", {"SpotPriceHistory": history}, parameters)
    price = prices.price(SPOT)
    assert (price.usd, price.source) == (Decimal("2.5"), "EC2 spot price history")


def test_spot_price_without_zone_is_the_highest() -> None:
    prices, stub = ec2()
    parameters = {"InstanceTypes": ["trn1.32xlarge"], "ProductDescriptions": ["Linux/UNIX"], "StartTime": ANY}
    history = [spot_entry("a", "2.5", 3), spot_entry("b", "21.5", 1)]
    stub.add_response("describe_spot_price_history", {"SpotPriceHistory": history}, parameters)
    price = prices.price(PricedItem(product="spot", region=REGION, instance_type="trn1.32xlarge"))
    assert price.usd == Decimal("21.5")
    assert price.confidence == "in us-west-2b; may change"


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("AccessDeniedException", "the permission pricing:GetProducts is missing"),
        ("ThrottlingException", "AWS answered ThrottlingException"),
    ],
)
def test_refusal_of_price_list_is_reported(code: str, says: str) -> None:
    prices, stub = price_list()
    stub.add_client_error("get_products", code, "no")
    with pytest.raises(UnavailableError, match=says):
        prices.price(NAT)


@pytest.mark.parametrize("item", [NAT, SPOT])
def test_other_endpoint_is_not_queried_for_prices(monkeypatch: pytest.MonkeyPatch, item: PricedItem) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(UnavailableError, match=r"http://127\.0\.0\.1:9 is not AWS, and has no prices"):
        AwsPrices(REGION).price(item)


@pytest.mark.parametrize("document", ["no json", "[]", "{}", '{"product": null}', '{"product": {"attributes": {}}}'])
def test_malformed_document_is_unavailable(document: str) -> None:
    with pytest.raises(UnavailableError, match="has an unknown format"):
        price_of(NAT, document)


def test_zone_without_spot_history_has_no_price() -> None:
    prices, stub = ec2()
    stub.add_response("describe_spot_price_history", {"SpotPriceHistory": []})
    assert prices.price(SPOT).usd is None

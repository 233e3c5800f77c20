"""The source of a price: the user's file, then AWS, then the snapshot."""

from decimal import Decimal

from tests.core.fake_prices import TODAY, FakePrices
from trainium_core.prices.price import Price, PricedItem, PriceTable
from trainium_core.prices.quotes import Quotes, quotes

NAT = PricedItem(product="nat-gateway", region="us-west-2")
OWN = {NAT: Price(usd=Decimal(3), source="mine", date=TODAY, origin="yours")}


def find_quotes(*, own: PriceTable | None = None, aws: FakePrices | None = None) -> Quotes:
    return quotes([NAT, NAT], own=own or {}, aws=aws)


def test_price_of_user_takes_precedence_over_aws() -> None:
    assert find_quotes(own=OWN, aws=FakePrices()).prices[NAT].origin == "yours"


def test_price_of_aws_takes_precedence_over_snapshot() -> None:
    assert find_quotes(aws=FakePrices()).prices[NAT].origin == "AWS"


def test_snapshot_is_used_without_aws() -> None:
    assert find_quotes().prices[NAT].origin == "snapshot"
    assert find_quotes().unavailable == ()


def test_unavailable_aws_uses_snapshot_and_reports_reason_once() -> None:
    other = PricedItem(product="s3-storage", region="us-west-2")
    quoted = quotes([NAT, other], own={}, aws=FakePrices(unavailable={"price"}))
    assert quoted.prices[NAT].origin == "snapshot"
    assert quoted.unavailable == ("no answer about price",)


def test_unlisted_price_of_aws_is_an_answer() -> None:
    assert find_quotes(aws=FakePrices(usd={"nat-gateway": None})).prices[NAT].usd is None

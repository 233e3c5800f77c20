"""Which source a price is taken from: one's own, then AWS, then the snapshot; what none has stays unknown."""

from decimal import Decimal

from tests.core.fake_prices import TODAY, FakePrices
from trainium_core.prices.price import Price, PricedItem, PriceTable, no_prices
from trainium_core.prices.quotes import Quotes, quotes

NAT = PricedItem(product="nat-gateway", region="us-west-2")
OWN = PriceTable({NAT: Price(usd=Decimal(3), source="mine", date=TODAY, origin="yours")})
SNAPSHOT = PriceTable({NAT: Price(usd=Decimal(2), source="old", date="2024-01-01", origin="snapshot")})


def find_quotes(
    *, own: PriceTable | None = None, aws: FakePrices | None = None, snapshot: PriceTable = SNAPSHOT
) -> Quotes:
    return quotes([NAT, NAT], own=own or no_prices(), aws=aws, snapshot=snapshot)


def test_users_price_takes_precedence_over_aws() -> None:
    assert find_quotes(own=OWN, aws=FakePrices()).prices[NAT].origin == "yours"


def test_price_of_aws_comes_before_the_snapshot() -> None:
    assert find_quotes(aws=FakePrices()).prices[NAT].origin == "AWS"


def test_without_aws_the_snapshot_answers() -> None:
    assert find_quotes().prices[NAT].origin == "snapshot"
    assert find_quotes().unavailable == ()


def test_a_silent_aws_leaves_the_snapshot_and_its_reason_once() -> None:
    other = PricedItem(product="s3-storage", region="us-west-2")
    found = quotes([NAT, other], own=no_prices(), aws=FakePrices(unavailable={"price"}), snapshot=SNAPSHOT)
    assert found.prices[NAT].origin == "snapshot"
    assert found.unavailable == ("no answer about price",)


def test_absent_price_of_aws_is_an_answer() -> None:
    assert find_quotes(aws=FakePrices(usd={"nat-gateway": None})).prices[NAT].usd is None

"""The source of a price: the user's file, then AWS, then the snapshot."""

from datetime import date, timedelta
from decimal import Decimal

import pytest

from tests.core.fake_prices import TODAY, FakePrices
from trainium_core.prices.file import snapshot_prices
from trainium_core.prices.price import CAPACITY_BLOCK, MAX_AGE, ON_DEMAND, SPOT, Price, PricedItem, PriceTable
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


@pytest.mark.parametrize("product", [SPOT, CAPACITY_BLOCK, ON_DEMAND])
def test_only_spot_and_block_prices_go_out_of_date(product: str) -> None:
    item, price = next(pair for pair in snapshot_prices().items() if pair[0].product == product and pair[1].usd)
    last = date.fromisoformat(price.date) + MAX_AGE
    on_last_day, later = (
        quotes([item], own={}, aws=None, today=day).prices[item] for day in (last, last + timedelta(days=1))
    )
    assert on_last_day == price
    assert (later.usd, later.was) == ((price.usd, None) if product == ON_DEMAND else (None, price.usd))


def test_old_price_of_the_user_is_kept() -> None:
    block = PricedItem(product=CAPACITY_BLOCK, region="us-east-1", instance_type="trn1.32xlarge")
    own = {block: Price(usd=Decimal(3), source="mine", date="2020-01-01", origin="yours")}
    assert quotes([block], own=own, aws=None, today=date(2026, 11, 28)).prices == own

"""Price files: the snapshot in the package is valid, and errors in the user's own file are reported."""

from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainium_core.catalog.catalog import builtin_catalog
from trainium_core.prices.file import PricesError, load_prices, snapshot_prices
from trainium_core.prices.price import PricedItem, PriceTable, best_price

HEADER = "product,instance_type,region,usd,date,source\n"
NEGOTIATED = "on-demand,trn1.32xlarge,us-west-2,18.50,2026-11-01,our agreement\n"
ITEM = PricedItem(product="on-demand", region="us-west-2", instance_type="trn1.32xlarge")


def own(folder: Path, text: str) -> PriceTable:
    file = folder / "prices.csv"
    file.write_text(text)
    return load_prices(file)


def spot(zone_id: str = "") -> PricedItem:
    return PricedItem(product="spot", region="us-east-1", instance_type="trn1.32xlarge", zone_id=zone_id)


@pytest.mark.parametrize("item", snapshot_prices())
def test_every_snapshot_price_has_source_date_and_confidence(item: PricedItem) -> None:
    price = snapshot_prices()[item]
    assert price.source
    assert price.confidence
    assert price.date <= "2026-11-29"
    assert price.origin == "snapshot"


@pytest.mark.parametrize("item", [item for item in snapshot_prices() if item.instance_type])
def test_snapshot_prices_are_of_offered_types(item: PricedItem) -> None:
    zones = builtin_catalog()[item.instance_type].zones[item.region]
    assert not item.zone_id or item.zone_id in zones


def test_snapshot_has_a_row_for_every_offered_trainium_type() -> None:
    on_demand = {
        PricedItem(product="on-demand", region=region, instance_type=entry.name)
        for entry in builtin_catalog().values()
        if not entry.is_gpu
        for region in entry.zones
    }
    assert on_demand <= snapshot_prices().keys()


def test_nat_gateway_has_a_price_wherever_trainium_is_offered() -> None:
    regions = {region for entry in builtin_catalog().values() if not entry.is_gpu for region in entry.zones}
    for product in ("nat-gateway", "nat-gateway-data", "public-ipv4"):
        assert regions <= {item.region for item in snapshot_prices() if item.product == product}


def test_us_east_2_has_every_price_of_a_cluster_that_us_west_2_has() -> None:
    there, here = (
        {item.product for item in snapshot_prices() if item.region == region and not item.instance_type}
        for region in ("us-west-2", "us-east-2")
    )
    assert there <= here


def test_users_price_is_read_with_its_source(tmp_path: Path) -> None:
    price = own(tmp_path, HEADER + NEGOTIATED)[ITEM]
    assert (price.usd, price.source, price.date, price.origin) == (
        Decimal("18.50"),
        "our agreement",
        "2026-11-01",
        "yours",
    )


def test_highest_price_counts_without_a_zone() -> None:
    price = best_price(snapshot_prices(), spot())
    assert price is not None
    assert price.usd == Decimal("8.3747")
    assert price == best_price(snapshot_prices(), spot("use1-az5"))


def test_zone_without_price_does_not_use_another_zone() -> None:
    assert best_price(snapshot_prices(), spot("use1-az1")) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the header lacks product, region, usd, date, source"),
        (HEADER.replace("date", "day"), "the header lacks date and has unknown columns: day; it must name"),
        (HEADER + NEGOTIATED.replace("on-demand", "on-demnd"), "unknown product 'on-demnd'; nearest: on-demand"),
        (HEADER + NEGOTIATED.replace("us-west-2", ""), "line 2: has no region"),
        (HEADER + NEGOTIATED.replace("our agreement", ""), "has no source"),
        (HEADER + NEGOTIATED.replace("trn1.32xlarge", ""), "on-demand needs an instance_type"),
        (HEADER + NEGOTIATED.replace("on-demand", "nat-gateway"), "nat-gateway takes no instance_type"),
        (
            HEADER + NEGOTIATED.replace("18.50", "0"),
            "usd is '0', must be dollars for one unit, above 0 and below 1,000,000",
        ),
        (HEADER + NEGOTIATED.replace("18.50", "nan"), "usd is 'nan', must be"),
        (HEADER + NEGOTIATED.replace("18.50", ""), "omit the row if the price is unknown"),
        (HEADER + NEGOTIATED.replace("2026-11-01", "last week"), "date is 'last week', must be a day"),
        (HEADER + NEGOTIATED + NEGOTIATED, "line 3: a second price for the same item"),
        (
            HEADER.replace("source", "source,zone_id") + NEGOTIATED.replace("agreement", "agreement,usw2-az1"),
            "zone_id is 'usw2-az1', but only spot has prices per zone",
        ),
    ],
)
def test_invalid_value_names_the_file_and_the_problem(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(PricesError) as refused:
        own(tmp_path, text)
    assert says in str(refused.value)
    assert str(refused.value).startswith(f"{tmp_path / 'prices.csv'}: ")


@given(text=st.text(alphabet='abc,"\n0.-', max_size=40))
def test_any_file_content_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = tmp_path_factory.getbasetemp() / "any.csv"
    file.write_text(HEADER + text)
    with suppress(PricesError):
        assert all(price.usd is None or price.usd > 0 for price in load_prices(file).values())


def test_binary_file_is_reported_as_unreadable(tmp_path: Path) -> None:
    (tmp_path / "prices.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PricesError, match="cannot be read"):
        load_prices(tmp_path / "prices.csv")

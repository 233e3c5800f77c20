"""The results of all regions: every way to buy the type, or the reason why it is unavailable."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.fake_account import FakeAccount
from tests.core.fake_capacity import ACTIVE, BLOCK, NOW, SCHEDULED_BLOCK, TOMORROW
from tests.core.plans import from_settings
from trainium_core.capacity.option import CapacityOption
from trainium_core.capacity.region_options import CapacityRequest
from trainium_core.capacity.search import CapacitySearch, search_capacity

REGION = "us-west-2"


def request(*, start_by: datetime | None = None, **settings: Any) -> CapacityRequest:
    return CapacityRequest(plan=from_settings(**settings), hours=24, now=NOW, start_by=start_by)


def search(account: FakeAccount, **settings: Any) -> CapacitySearch:
    return search_capacity(request(**settings), [REGION], lambda _: account)


def options(account: FakeAccount, capacity: str, **settings: Any) -> list[CapacityOption]:
    return [option for option in search(account, **settings).options if option.capacity == capacity]


def the_option(account: FakeAccount, capacity: str, **settings: Any) -> CapacityOption:
    (option,) = options(account, capacity, **settings)
    return option


def test_on_demand_could_start_now_in_each_zone_of_the_type() -> None:
    found = options(FakeAccount(), "on-demand")
    assert [(option.zone_id, option.prospect) for option in found] == [("usw2-az1", "now"), ("usw2-az4", "now")]


def test_hourly_capacity_costs_all_nodes_and_hours() -> None:
    account = FakeAccount(usd={"on-demand": Decimal("21.5")}, zones=["usw2-az4"])
    option = the_option(account, "on-demand", nodes=3)
    assert (option.hours, option.hourly, option.total) == (24, Decimal("21.5"), Decimal(1548))


def test_on_demand_without_listed_price_is_unlikely() -> None:
    option = the_option(FakeAccount(usd={"on-demand": None}, zones=["usw2-az4"]), "on-demand")
    assert (option.prospect, option.total, option.note) == ("unlikely", None, "no price listed")


def test_spot_with_lowest_score_is_unlikely() -> None:
    assert the_option(FakeAccount(scores={"usw2-az4": 1}, zones=["usw2-az4"]), "spot").prospect == "unlikely"


def test_spot_without_a_score_is_unknown() -> None:
    option = the_option(FakeAccount(scores={}, zones=["usw2-az4"]), "spot")
    assert (option.prospect, option.note) == ("unknown", "AWS gave no spot placement score")


def test_block_total_is_its_fee_and_price_is_per_instance_hour() -> None:
    block = replace(BLOCK, instances=2, upfront_fee=Decimal(1440))
    option = the_option(FakeAccount(blocks=[block]), "capacity-block", nodes=2)
    assert (option.prospect, option.start, option.hours) == ("later", TOMORROW, 24)
    assert (option.total, option.hourly, option.offering_id) == (1440, 30, BLOCK.offering_id)


def test_fee_in_another_currency_is_not_counted_as_dollars() -> None:
    option = the_option(FakeAccount(blocks=[replace(BLOCK, currency="CNY")]), "capacity-block")
    assert (option.total, option.hourly, option.note) == (None, None, "360.00 CNY")


@pytest.mark.parametrize(
    ("blocks", "settings", "note"),
    [
        ((), {}, "no block for 1 node and 24 h is for sale"),
        (None, {}, "AWS sells no blocks of this type here"),
        ((BLOCK,), {"nodes": 65}, "a block holds up to 64 instances; 65 are needed"),
    ],
)
def test_missing_block_is_an_option_with_a_reason(blocks: Any, settings: Mapping[str, Any], note: str) -> None:
    option = the_option(FakeAccount(blocks=blocks), "capacity-block", **settings)
    assert (option.prospect, option.note) == ("no", note)


def test_missing_block_names_the_latest_start() -> None:
    found = search_capacity(request(start_by=TOMORROW), [REGION], lambda _: FakeAccount(blocks=())).options
    (note,) = [option.note for option in found if option.capacity == "capacity-block"]
    assert note == f"no block for 1 node and 24 h that starts by {TOMORROW:%Y-%m-%d} is for sale"


def test_reservation_with_room_is_paid_and_could_start_now() -> None:
    option = the_option(FakeAccount(account_reservations=[ACTIVE]), "reservation", nodes=4)
    assert (option.prospect, option.paid_for, option.reservation_id) == ("now", True, ACTIVE.reservation_id)
    assert (option.zone_id, option.hours, option.note) == ("usw2-az1", None, "4 of 4 instances are left")


def test_scheduled_block_has_a_later_start_and_an_end() -> None:
    option = next(o for o in search(FakeAccount(account_reservations=[SCHEDULED_BLOCK])).options if o.paid_for)
    assert (option.capacity, option.prospect, option.start) == ("capacity-block", "later", TOMORROW)
    assert (option.end, option.hours) == (TOMORROW + timedelta(days=2, minutes=-45), Decimal("47.25"))


@pytest.mark.parametrize(
    ("reservation", "prospect", "note"),
    [
        (replace(ACTIVE, platform="Windows"), "no", "for Windows"),
        (replace(ACTIVE, available=1), "no", "1 of 4 instances are left; 2 are needed"),
        (
            replace(SCHEDULED_BLOCK, state="active", available=4, start=NOW, end=NOW + timedelta(minutes=30)),
            "no",
            "its instances are being terminated",
        ),
        (replace(SCHEDULED_BLOCK, total=0), "unknown", "its size is known only after it starts"),
    ],
)
def test_unusable_reservation_has_a_reason(reservation: Any, prospect: str, note: str) -> None:
    option = next(o for o in search(FakeAccount(account_reservations=[reservation]), nodes=2).options if o.paid_for)
    assert (option.prospect, option.note) == (prospect, note)


@pytest.mark.parametrize(
    ("question", "ways"),
    [
        ("offering", {"on-demand", "spot"}),
        ("scores", {"spot"}),
        ("blocks", {"capacity-block"}),
        ("reserved capacity", {"reservation"}),
    ],
)
def test_failed_call_is_unknown_with_the_reason(question: str, ways: set[str]) -> None:
    unknown = [o for o in search(FakeAccount(unavailable={question})).options if o.prospect == "unknown"]
    assert {option.capacity for option in unknown} == ways
    assert {option.note for option in unknown} == {f"no answer about {question}"}


def test_unavailable_region_does_not_hide_others() -> None:
    dark = FakeAccount(unavailable={"offering", "scores", "blocks", "reserved capacity"})
    found = search_capacity(
        request(), ["us-east-1", "us-west-2"], lambda region: dark if region == "us-east-1" else FakeAccount()
    )
    prospects = {option.region: set[str]() for option in found.options}
    for option in found.options:
        prospects[option.region].add(option.prospect)
    assert prospects == {"us-east-1": {"unknown"}, "us-west-2": {"now", "no"}}


@given(
    unavailable=st.sets(st.sampled_from(["offering", "scores", "blocks", "reserved capacity", "price"])),
    usd=st.none() | st.decimals("0.01", 100, places=4),
    nodes=st.integers(1, 100),
)
def test_total_is_for_all_nodes_and_hours_and_no_option_is_lost(
    unavailable: set[str], usd: Decimal | None, nodes: int
) -> None:
    account = FakeAccount(unavailable=unavailable, usd={"on-demand": usd, "spot": usd}, blocks=())
    found = search(account, nodes=nodes).options
    assert {"on-demand", "spot", "capacity-block"} <= {option.capacity for option in found}
    assert all(
        option.total == option.hourly * nodes * 24
        for option in found
        if option.total is not None and option.hourly is not None
    )
    assert all((option.total is None) == (option.hourly is None) for option in found)


def test_type_has_options_only_for_ways_it_is_sold() -> None:
    ways = {option.capacity for option in search(FakeAccount(blocks=[BLOCK]), instance_type="trn1.2xlarge").options}
    assert ways == {"on-demand", "spot"}


def test_region_without_the_type_is_reported() -> None:
    assert {o.note for o in search(FakeAccount(zones=())).options if o.capacity in ("on-demand", "spot")} == {
        "no zone offers the type to this account"
    }

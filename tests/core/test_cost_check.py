"""The check `cost` shows the totals, warns of unknown prices, and never fails."""

from decimal import Decimal
from typing import Any

import pytest

from tests.core.fake_prices import FakePrices
from tests.core.plans import from_settings
from trainium_core.costs.estimate import stack_cost_items
from trainium_core.preflight.cost_check import check_cost
from trainium_core.prices.price import Price, PricedItem
from trainium_runtime.check_result import CheckResult

CHEAP: dict[str, Decimal | None] = {
    "on-demand": Decimal("21.5"),
    "gp3-storage": Decimal("0.08"),
    "nat-gateway": Decimal("0.045"),
    "public-ipv4": Decimal("0.005"),
}


def check(account: FakePrices, **settings: Any) -> CheckResult:
    return check_cost(from_settings(nodes=2, **settings), account)


def test_snapshot_prices_pass_with_their_age_and_reason() -> None:
    answer = check(FakePrices(unavailable={"price"}))
    assert answer.outcome == "pass"
    assert answer.found.endswith(
        "from a snapshot of list prices, the oldest dated 2024-02-01, because no answer about price"
    )


def test_prices_of_the_user_are_named() -> None:
    volume = PricedItem(product="gp3-storage", region="us-west-2")
    yours = Price(usd=Decimal("0.05"), source="contract", date="2026-11-01", origin="yours")
    answer = check_cost(from_settings().but(prices={volume: yours}), FakePrices(usd=CHEAP))
    assert answer.found.endswith("; your prices in the file of trn:prices, and list prices, before tax and discounts")


def test_prices_of_the_user_alone_are_no_list_prices() -> None:
    yours = Price(usd=Decimal("0.05"), source="contract", date="2026-11-01", origin="yours")
    plan = from_settings()
    answer = check_cost(plan.but(prices={cost.item: yours for cost in stack_cost_items(plan)}), FakePrices())
    assert answer.found.endswith("; your prices in the file of trn:prices")


def test_unknown_price_is_a_warning() -> None:
    answer = check(FakePrices(usd={**CHEAP, "gp3-storage": None}))
    assert answer.outcome == "warn"
    assert "running: at least $43.08, 1 amount unknown;" in answer.found
    assert "trn:prices" in answer.fix


def test_type_without_an_on_demand_price_is_a_warning() -> None:
    answer = check(FakePrices(usd={**CHEAP, "on-demand": None}), instance_type="trn2.48xlarge", region="us-east-2")
    assert answer.outcome == "warn"
    assert answer.found.startswith("AWS lists no on-demand price for trn2.48xlarge in us-east-2")
    assert answer.fix == "set trn:capacity to spot or capacity-block"


@pytest.mark.parametrize("unavailable", [(), ("price",)])
def test_prices_never_fail_the_check(unavailable: tuple[str, ...]) -> None:
    plans = [{}, {"egress": "nat-gateway"}, {"instance_type": "trn2.48xlarge", "region": "ap-south-2"}]
    outcomes = {
        check(FakePrices(unavailable=unavailable, usd={"on-demand": None}), **settings).outcome for settings in plans
    }
    assert outcomes <= {"pass", "warn"}

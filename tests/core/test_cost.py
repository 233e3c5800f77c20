"""The cost of a plan: its items, their arithmetic, and totals with unknown prices."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.fake_prices import TODAY, FakePrices
from tests.core.plans import from_settings, plans
from trainium_core.costs.estimate import (
    CostLine,
    Estimate,
    Total,
    cost_lines,
    dollars,
    estimate,
    stack_cost_items,
)
from trainium_core.engines.ec2.costs import cost_items
from trainium_core.plan import Plan
from trainium_core.prices.price import Price
from trainium_core.prices.quotes import Quotes


def line_of(estimated: Estimate, product: str) -> CostLine:
    (line,) = [line for line in estimated.lines if line.item.product == product]
    return line


def estimated(hours: int = 8, usd: dict[str, Decimal | None] | None = None, **settings: Any) -> Estimate:
    return estimate(from_settings(**settings), hours=Decimal(hours), aws=FakePrices(usd=usd or {}))


def test_root_volumes_are_billed_by_month_and_end_with_the_nodes() -> None:
    line = line_of(estimated(nodes=2, root_volume_gib=365, usd={"gp3-storage": Decimal("0.08")}), "gp3-storage")
    assert (line.running_hour, line.asleep_month) == (Decimal("0.08"), 0)


def test_only_throughput_above_the_baseline_is_billed() -> None:
    usd: dict[str, Decimal | None] = {"gp3-throughput": Decimal("40.96")}
    line = line_of(estimated(nodes=2, root_volume_throughput=125 + 365, usd=usd), "gp3-throughput")
    assert (line.running_hour, line.asleep_month) == (Decimal("0.04"), 0)
    lines = estimated(root_volume_throughput=125, usd=usd).lines
    assert "gp3-throughput" not in {line.item.product for line in lines}


def test_offline_prices_are_those_of_the_snapshot() -> None:
    offline = estimate(from_settings(), aws=None)
    assert {line.price.origin for line in offline.lines if line.price} == {"snapshot"}
    assert line_of(offline, "on-demand").unit_usd == Decimal("21.5")


def test_complete_total_is_an_amount() -> None:
    assert str(Total(usd=Decimal("1234.5"), unknown=0)) == "$1,234.50"


def test_total_with_unknown_prices_is_shown_as_a_minimum() -> None:
    assert str(Total(usd=Decimal(43), unknown=2)) == "at least $43.00, 2 amounts unknown"
    assert str(Total(usd=Decimal(0), unknown=1)) == "unknown, 1 amount unknown"


@pytest.mark.parametrize(
    ("usd", "shown"), [("0", "$0.00"), ("0.0049", "< $0.01"), ("0.005", "< $0.01"), ("0.045", "$0.05")]
)
def test_amount_is_never_rounded_to_zero(usd: str, shown: str) -> None:
    assert dollars(Decimal(usd)) == shown


amounts = st.decimals("0.0001", "1000", places=4)


@st.composite
def quoted(draw: st.DrawFn, plan: Plan) -> Quotes:
    """For each billed item of the plan: a price, a price that AWS does not list, or no price."""
    usd = {item.item: draw(st.none() | st.just("no price") | amounts) for item in cost_items(plan)}
    return Quotes(
        prices={
            item: Price(usd=amount, source="drawn", date=TODAY, origin="AWS")
            for item, amount in usd.items()
            if not isinstance(amount, str)
        }
    )


@given(data=st.data(), plan=plans(), hours=st.integers(1, 1000))
def test_totals_sum_known_amounts_and_count_unknown_ones(data: st.DataObject, plan: Plan, hours: int) -> None:
    lines = cost_lines(cost_items(plan), data.draw(quoted(plan)))
    whole = Estimate(lines=lines, hours=Decimal(hours))
    for total, parts in [
        (whole.running_hour, [line.running_hour for line in lines]),
        (whole.asleep_month, [line.asleep_month for line in lines]),
        (whole.pilot, [line.pilot(Decimal(hours)) for line in lines]),
    ]:
        assert total.usd == sum(part for part in parts if part is not None)
        assert total.unknown == sum(part is None for part in parts)
        assert ("unknown" in str(total)) == any(part is None for part in parts)


@given(data=st.data(), plan=plans())
def test_known_price_never_lowers_a_total_or_adds_a_gap(data: st.DataObject, plan: Plan) -> None:
    less = data.draw(quoted(plan))
    dollar = Price(usd=Decimal(1), source="learnt", date=TODAY, origin="yours")
    learnt = {item.item: dollar for item in cost_items(plan)} | {i: p for i, p in less.prices.items() if p.usd}
    before = Estimate(lines=cost_lines(cost_items(plan), less), hours=Decimal(8))
    after = Estimate(lines=cost_lines(cost_items(plan), Quotes(prices=learnt)), hours=Decimal(8))
    assert after.running_hour.usd >= before.running_hour.usd
    assert after.asleep_month.usd >= before.asleep_month.usd
    assert after.running_hour.unknown == after.asleep_month.unknown == 0


@given(plan=plans())
def test_sleeping_cluster_is_billed_for_no_volume_and_only_reserved_instances(plan: Plan) -> None:
    lines = estimate(plan, aws=FakePrices()).lines
    asleep = {line.item.product for line in lines if line.asleep_month}
    assert "gp3-storage" not in asleep
    assert bool(asleep & {"on-demand", "spot", "capacity-block"}) == (plan.capacity == "reservation")


@given(nodes=st.integers(1, 500), usd=amounts)
def test_node_costs_are_linear_and_network_costs_constant(nodes: int, usd: Decimal) -> None:
    prices: dict[str, Decimal | None] = {"on-demand": usd, "gp3-storage": usd, "nat-gateway": usd}
    one, many = estimated(usd=prices), estimated(nodes=nodes, usd=prices)
    for product, factor in (("on-demand", nodes), ("gp3-storage", nodes), ("nat-gateway", 1)):
        single, total = line_of(one, product).running_hour, line_of(many, product).running_hour
        assert single is not None
        assert total is not None
        assert abs(total - factor * single) < Decimal("1e-15")


def products(**settings: Any) -> list[str]:
    return [item.item.product for item in stack_cost_items(from_settings(**settings))]


@pytest.mark.parametrize("product", ["s3-storage", "nat-gateway"])
def test_costs_of_two_stacks_are_listed_twice_unless_by_use(product: str) -> None:
    listed = products(stacks=("cluster", "pcs"), egress="nat-gateway")
    assert listed.count(product) == (1 if product == "s3-storage" else 2)


def test_volume_initialization_is_billed_by_use() -> None:
    line = line_of(estimated(root_volume_initialization=300), "volume-initialization")
    assert (line.billed, line.unit) == ("by use", "GB")

"""An estimate holds every stack of trn:stacks; what has no price is unknown, and nothing is left out without a word."""

from decimal import Decimal
from typing import Any

import pytest

from tests.core.fake_prices import FakePrices
from tests.core.plans import from_settings
from trainium_core.costs.estimate import estimate
from trainium_core.costs.stacks import stack_cost_items, stack_cost_notes

TRAINING_PLAN = "arn:aws:sagemaker:us-west-2:123456789012:training-plan/january"


def products(**settings: Any) -> list[str]:
    return [item.item.product for item in stack_cost_items(from_settings(**settings))]


def test_instances_of_hyperpod_cost_whether_the_cluster_sleeps_or_not() -> None:
    estimated = estimate(from_settings(nodes=2, stacks=("hyperpod",)), aws=FakePrices(), items=stack_cost_items)
    workers, controller, *_ = estimated.lines
    assert (workers.item.instance_type, workers.quantity) == ("trn1.32xlarge", 2)
    assert (controller.item.instance_type, controller.quantity) == ("m5.xlarge", 1)
    assert workers.asleep_month == Decimal(2 * 730)


def test_prices_of_hyperpod_that_no_source_has_are_unknown() -> None:
    assert estimate(from_settings(stacks=("hyperpod",)), aws=None, items=stack_cost_items).running_hour.unknown == 3


def test_a_training_plan_is_shown_as_paid_for() -> None:
    plan = from_settings(stacks=("hyperpod",), hyperpod_training_plan=TRAINING_PLAN)
    assert "trn1.32xlarge" not in [item.item.instance_type for item in stack_cost_items(plan)]
    assert any("training plan is paid for" in note for note in stack_cost_notes(plan))


@pytest.mark.parametrize("product", ["s3-storage", "nat-gateway"])
def test_what_two_stacks_have_is_billed_twice_unless_it_is_billed_by_use(product: str) -> None:
    found = products(stacks=("cluster", "hyperpod"), egress="nat-gateway")
    assert found.count(product) == (1 if product == "s3-storage" else 2)

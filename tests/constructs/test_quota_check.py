"""QuotaCheck: its properties, what it may do, and what waits for it."""

from functools import cache

import pytest
from aws_cdk import aws_ec2 as ec2

from tests.constructs.synth import (
    Json,
    Template,
    a_plan,
    as_list,
    cluster_template,
    new_stack,
    statements,
    synthesize,
)
from trainium_cdk import QuotaCheck
from trainium_core.quotas.ec2 import quota_need
from trainium_runtime.quota_need import QuotaNeed

GATE = "Custom::TrnQuotaGate"


@cache
def gate() -> Template:
    stack = new_stack()
    QuotaCheck(stack, "Gate", instance_type=ec2.InstanceType("trn1.32xlarge"), nodes=2)
    return synthesize(stack)


def resource() -> Json:
    (gate_resource,) = gate().resources(GATE).values()
    return gate_resource


def test_the_gate_knows_what_the_plan_needs_and_nothing_else() -> None:
    need = quota_need(a_plan())
    assert need is not None
    shown = {key: str(value) for key, value in resource()["Properties"].items()}
    assert QuotaNeed.from_properties(shown) == need
    assert set(shown) == {"ServiceToken", "ServiceTimeout", *need.to_properties()}


def test_the_function_may_do_all_it_needs_before_the_gate_is_tried() -> None:
    asker = {name for name in gate().resources() if "Asker" in name}
    assert asker <= set(resource()["DependsOn"])


def test_the_function_may_only_read() -> None:
    actions = {action for s in statements(gate()) for action in as_list(s["Action"]) if not action.startswith("logs:")}
    assert actions
    assert all(action.split(":")[1].startswith(("Get", "List", "Describe")) for action in actions)


@pytest.mark.parametrize("capacity", ["capacity-block", "reservation"])
def test_reserved_capacity_has_no_gate(capacity: str) -> None:
    template = cluster_template(capacity=capacity, reservation_id="cr-0123456789abcdef0")
    assert not [name for name in template.resources() if "QuotaGate" in name]


def test_no_instance_is_requested_before_the_gate_is_passed() -> None:
    template = cluster_template()
    (name,) = template.resources(GATE)
    assert name in template.before(template.logical_id("AWS::AutoScaling::AutoScalingGroup"))


def test_nothing_has_to_be_made_before_the_gate_but_what_it_is_made_of() -> None:
    template = cluster_template()
    (name,) = template.resources(GATE)
    assert all("QuotaGate" in before for before in template.before(name))


def test_the_gate_can_be_left_out() -> None:
    template = cluster_template(quota_gate=False)
    assert not [name for name in template.resources() if "QuotaGate" in name]

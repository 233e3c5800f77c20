"""What follows from a plan: network interfaces, addresses, quota need, the torchrun line, the steps after it."""

import shlex

import pytest
from hypothesis import given

from tests.core.plans import from_settings, plans
from trainium_core.catalog.catalog import builtin_catalog
from trainium_core.nodes.next_steps import torchrun_command
from trainium_core.plan import Plan
from trainium_core.plan.network_layout import (
    addresses_needed,
    network_interfaces,
    node_subnet_addresses,
)
from trainium_core.quotas.ec2 import quota_need


@given(plan=plans())
def test_a_node_has_as_many_efa_interfaces_as_its_type_takes(plan: Plan) -> None:
    efa = [i for i in network_interfaces(plan) if i.interface_type in ("efa", "efa-only")]
    assert len(efa) == plan.type.efa_interfaces


@given(plan=plans())
def test_only_the_first_card_is_device_0_and_it_carries_ip(plan: Plan) -> None:
    first, *rest = network_interfaces(plan)
    assert (first.card, first.device, first.has_address) == (0, 0, True)
    assert [(i.card, i.device) for i in rest] == [(card, 1) for card in range(1, len(rest) + 1)]


@given(plan=plans())
def test_a_plan_needs_no_more_addresses_than_its_subnet_has(plan: Plan) -> None:
    assert plan.nodes <= addresses_needed(plan) <= node_subnet_addresses(plan)


@given(plan=plans())
def test_quota_need_is_the_vcpus_of_all_nodes(plan: Plan) -> None:
    need = quota_need(plan)
    if plan.capacity in ("on-demand", "spot"):
        assert need is not None
        assert need.vcpus == plan.nodes * builtin_catalog()[plan.instance_type].vcpus
    else:
        assert need is None


@pytest.mark.parametrize(("capacity", "code"), [("on-demand", "L-2C3B7624"), ("spot", "L-6B0D517C")])
def test_each_market_has_a_quota_of_its_own(capacity: str, code: str) -> None:
    need = quota_need(from_settings(capacity=capacity, nodes=2))
    assert need is not None
    assert (need.code, need.vcpus) == (code, 256)


@given(plan=plans())
def test_torchrun_starts_a_process_for_each_logical_core_of_each_node(plan: Plan) -> None:
    words = shlex.split(shlex.split(torchrun_command(plan))[-1])
    given_options = dict(word.removeprefix("--").split("=", 1) for word in words if word.startswith("--"))
    processes = int(given_options["nproc_per_node"]) * int(given_options["nnodes"])
    assert processes * plan.lnc == plan.nodes * plan.type.physical_neuron_cores

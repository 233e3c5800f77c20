"""What follows from a plan: network interfaces, addresses, quota need, the torchrun line, the steps after it."""

import ipaddress
import shlex

import pytest
from hypothesis import given

from tests.core.plans import RESERVATION, from_settings, plans
from trainium_core.catalog.catalog import builtin_catalog
from trainium_core.nodes.next_steps import torchrun_command
from trainium_core.plan import Plan
from trainium_core.plan.network_layout import (
    addresses_needed,
    network_interfaces,
    node_subnet_addresses,
    node_subnet_prefix,
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
def test_no_card_has_more_interfaces_than_it_takes_and_no_card_is_invented(plan: Plan) -> None:
    cards = [i.card for i in network_interfaces(plan)]
    assert len(set(cards)) == len(cards)
    assert max(cards) < plan.type.network_cards


def test_a_type_without_efa_has_one_ordinary_interface() -> None:
    (only,) = network_interfaces(from_settings(instance_type="trn1.2xlarge"))
    assert only.interface_type is None


@given(plan=plans())
def test_a_plan_needs_no_more_addresses_than_its_subnet_has(plan: Plan) -> None:
    assert plan.nodes <= addresses_needed(plan) <= node_subnet_addresses(plan)


def test_efa_only_cards_take_no_address() -> None:
    assert addresses_needed(from_settings(nodes=3)) == 24
    assert addresses_needed(from_settings(nodes=3, secondary_interface_type="efa-only")) == 3


def test_nodes_get_half_of_the_block_less_what_aws_keeps() -> None:
    plan = from_settings(vpc_cidr="10.42.0.0/20")
    assert node_subnet_prefix(plan) == 21
    assert node_subnet_addresses(plan) == ipaddress.IPv4Network("10.42.0.0/21").num_addresses - 5


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


@pytest.mark.parametrize("nodes", [1, 4])
def test_all_nodes_meet_at_the_head_node_with_ranks_of_the_membership(nodes: int) -> None:
    assert torchrun_command(from_settings(nodes=nodes), "my.py") == (
        f"bash -lc 'torchrun --nnodes={nodes} --nproc_per_node=32 --node_rank=$TRN_NODE_RANK "
        "--master_addr=$HEAD_NODE --master_port=41000 my.py'"
    )


def test_cores_can_be_taken_one_by_one_on_trainium2() -> None:
    plan = from_settings(instance_type="trn2.48xlarge", region="us-east-2", logical_neuroncore_config="1")
    assert plan.neuron_cores_per_node == 128


def test_reserved_capacity_counted_when_it_was_reserved() -> None:
    assert quota_need(from_settings(capacity="reservation", reservation_id=RESERVATION)) is None

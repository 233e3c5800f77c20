"""What derives from a plan: network interfaces, addresses, quota, the torchrun command."""

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
from trainium_core.plan.values import CapacityKind
from trainium_core.quotas.ec2 import instances_quota_need, quota_need
from trainium_runtime.quota_need import is_in_family


@given(plan=plans())
def test_node_has_the_efa_interfaces_of_its_type(plan: Plan) -> None:
    efa = [i for i in network_interfaces(plan) if i.interface_type in ("efa", "efa-only")]
    assert len(efa) == plan.type.efa_interfaces


@given(plan=plans())
def test_first_card_has_device_0_and_an_address_and_others_the_device_of_their_type(plan: Plan) -> None:
    first, *rest = network_interfaces(plan)
    assert (first.card, first.device, first.has_address) == (0, 0, True)
    device = 0 if plan.network.secondary_interface_type == "efa-only" else 1
    assert [(i.card, i.device) for i in rest] == [(card, device) for card in range(1, len(rest) + 1)]


@given(plan=plans())
def test_plan_needs_no_more_addresses_than_its_subnet_has(plan: Plan) -> None:
    assert plan.nodes <= addresses_needed(plan) <= node_subnet_addresses(plan)


@given(plan=plans())
def test_quota_need_is_the_vcpus_of_all_nodes(plan: Plan) -> None:
    need = quota_need(plan)
    if (plan.type.generation, plan.capacity) == ("p6", "spot"):
        assert need is None, "sources disagree about its code"
    elif plan.capacity in ("on-demand", "spot"):
        assert need is not None
        assert need.vcpus == plan.nodes * builtin_catalog()[plan.instance_type].vcpus
    else:
        assert need is None


@pytest.mark.parametrize(("capacity", "code"), [("on-demand", "L-2C3B7624"), ("spot", "L-6B0D517C")])
def test_each_market_has_its_own_quota(capacity: str, code: str) -> None:
    need = quota_need(from_settings(capacity=capacity, nodes=2))
    assert need is not None
    assert (need.code, need.vcpus) == (code, 256)


@given(plan=plans())
def test_torchrun_starts_a_process_per_logical_core_of_each_node(plan: Plan) -> None:
    words = shlex.split(shlex.split(torchrun_command(plan))[-1])
    given_options = dict(word.removeprefix("--").split("=", 1) for word in words if word.startswith("--"))
    processes = int(given_options["nproc_per_node"]) * int(given_options["nnodes"])
    assert processes * plan.lnc == plan.nodes * (plan.type.gpus or plan.type.physical_neuron_cores)


@pytest.mark.parametrize(
    ("name", "capacity", "code"),
    [
        ("p5.48xlarge", "on-demand", "L-417A185B"),
        ("p5en.48xlarge", "spot", "L-C4BD4855"),
        ("p4de.24xlarge", "spot", "L-7212CCBC"),
        ("p6-b200.48xlarge", "spot", None),
        ("g6e.12xlarge", "on-demand", "L-DB2E81BA"),
        ("g6.xlarge", "spot", "L-3819A6DF"),
    ],
)
def test_gpu_quota_is_per_family_or_p_generation(name: str, capacity: CapacityKind, code: str | None) -> None:
    kind = builtin_catalog()[name]
    need = instances_quota_need(kind, 2, capacity, region="us-west-2", cluster_name="gpus")
    assert (need and need.code) == code
    if need:
        assert need.vcpus == 2 * kind.vcpus
        assert is_in_family(need.family, name)
        assert not is_in_family(need.family, "p3.16xlarge") or need.family == "p"

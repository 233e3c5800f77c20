"""The Slurm configuration of a plan, as used by AWS PCS and the lab."""

from typing import Any

import pytest

from tests.core.plans import from_settings, the_problem
from trainium_core.engines.pcs import slurm_settings
from trainium_core.engines.registry import stack_warnings
from trainium_core.plan.node_settings import node_settings
from trainium_userdata.expectations import node_expectations


def plan(**settings: Any) -> Any:
    return from_settings(stacks=("pcs",), **settings)


def test_gres_counts_devices_of_a_node() -> None:
    assert slurm_settings.group_settings(plan())["Gres"] == "neuron:16"
    assert slurm_settings.gres_records(plan()) == [{"Name": "neuron", "Count": "16"}]


def test_features_name_type_cores_and_framework() -> None:
    assert slurm_settings.features(plan()) == ["neuron", "trn1.32xlarge", "neuroncores32", "xla"]


def test_features_of_image_id_name_no_framework() -> None:
    assert slurm_settings.features(plan(ami="ami-0123456789abcdef0"))[-1] == "neuroncores32"


def test_own_image_of_slurm_nodes_promises_no_framework() -> None:
    own = plan(pcs_ami="ami-0123456789abcdef0")
    assert slurm_settings.features(own)[-1] == "neuroncores32"
    assert node_expectations(node_settings(slurm_settings.with_node_image(own)))["framework"] is None


def test_cpus_are_half_of_vcpus() -> None:
    assert slurm_settings.cpus(plan()) == 64


@pytest.mark.parametrize(("nodes", "login", "size"), [(31, "on", "SMALL"), (32, "on", "MEDIUM"), (32, "off", "SMALL")])
def test_cluster_size_has_room_for_login_node(nodes: int, login: str, size: str) -> None:
    assert slurm_settings.cluster_size(plan(nodes=nodes, pcs_login=login)) == size


def test_first_queue_is_default_and_all_have_whole_nodes() -> None:
    of_plan = plan(pcs_queues=("trn", "urgent:10"))
    first, urgent = (slurm_settings.queue_settings(of_plan, queue) for queue in slurm_settings.queues(of_plan))
    assert first == {"Exclusive": "NODE", "PriorityTier": "1", "Default": "YES"}
    assert urgent == {"Exclusive": "NODE", "PriorityTier": "10"}


def test_queue_of_older_slurm_has_whole_nodes() -> None:
    of_plan = plan(pcs_slurm_version="25.11")
    (queue,) = slurm_settings.queues(of_plan)
    assert slurm_settings.queue_settings(of_plan, queue)["OverSubscribe"] == "EXCLUSIVE"


def test_slurm_version_closed_to_new_clusters_is_refused_with_its_end() -> None:
    problem = the_problem(stacks="pcs", pcs_slurm_version="25.05")
    assert problem.key == "pcs_slurm_version"
    assert problem.allowed == "26.05, 25.11; a new cluster cannot have 25.05, supported until 2026-11-30"


@pytest.mark.parametrize(
    ("key", "settings"),
    [
        ("pcs_min_nodes", {"nodes": 2, "pcs_min_nodes": 3}),
        ("pcs_queues", {"pcs_queues": "trn,TRN"}),
        ("pcs_queues", {"pcs_queues": "ab"}),
        ("pcs_queues", {"pcs_queues": "trn,urgent:65534"}),
        ("pcs_queues", {"pcs_queues": ",".join(f"queue{number}" for number in range(11))}),
        ("cluster_name", {"cluster_name": "ab"}),
        ("nodes", {"nodes": 2048, "vpc_cidr": "10.0.0.0/16"}),
        ("pcs_interruptible", {"pcs_interruptible": "on"}),
        ("ends_action", {"ends": "5d", "ends_action": "sleep"}),
        ("budget_action", {"budget_usd": "500", "budget_action": "stop"}),
        ("idle_minutes", {"idle_minutes": "60"}),
        ("ami", {"ami": "/aws/service/neuron/dlami/pytorch-2.9/amazon-linux-2023/latest/image_id"}),
        ("ami", {"ami": "/our/golden/image"}),
    ],
)
def test_setting_that_a_pcs_plan_cannot_have_is_refused(key: str, settings: dict[str, Any]) -> None:
    assert the_problem(stacks="pcs", **settings).key == key


@pytest.mark.parametrize(
    "settings", [{"ami": "/imagebuilder/golden"}, {"ami": "/our/image", "pcs_ami": "ami-12345678"}]
)
def test_parameter_that_image_builder_can_read_or_need_not_read_is_accepted(settings: dict[str, str]) -> None:
    assert plan(**settings).ami == settings["ami"]


def test_plan_in_a_capacity_block_says_when_jobs_get_a_notice_of_its_end() -> None:
    block = plan(capacity="capacity-block", reservation_id="cr-0123456789abcdef0")
    text = stack_warnings(block, "pcs")["reservation_id"]
    assert "30 minutes before the Capacity Block ends" in text
    assert "60 minutes before the end" in text

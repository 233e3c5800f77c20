"""The expected values of a node."""

import pytest

from tests.userdata.plans import every_plan, plan_for, plan_id
from trainium_core.facts import facts
from trainium_core.plan.node_settings import node_settings
from trainium_userdata.expectations import node_expectations

PREFIX = facts()["neuron_images"]["parameter_prefix"]


@pytest.mark.parametrize(("instance_type", "lnc"), [("trn1.32xlarge", None), ("trn2.48xlarge", 2)])
def test_lnc_is_expected_only_of_types_that_have_one(instance_type: str, lnc: int | None):
    assert node_expectations(node_settings(plan_for(instance_type)))["logical_neuroncore_config"] == lnc


@pytest.mark.parametrize(
    ("parameter", "expected"),
    [
        (f"{PREFIX}pytorch-2.9/ubuntu-24.04/latest/image_id", "pytorch"),
        (f"{PREFIX}base/ubuntu-24.04/latest/image_id", None),
        ("/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id", None),
        (None, None),
    ],
)
def test_framework_is_expected_only_of_an_image_for_a_framework(parameter: str | None, expected: str | None):
    image = {"ami": parameter or "ami-0123456789abcdef0"}
    if parameter and not parameter.startswith(PREFIX):
        image["neuron_software"] = "install"
    assert node_expectations(node_settings(plan_for("trn2.48xlarge", **image)))["framework"] == expected


@pytest.mark.parametrize(
    ("instance_type", "expected"),
    [
        ("trn1.32xlarge", {"pytorch": "xla", "jax": "jax"}),
        ("trn2.48xlarge", {"torch_neuronx": "native", "pytorch": "xla", "jax": "jax"}),
    ],
)
def test_image_given_by_id_may_have_any_framework_of_the_type(instance_type: str, expected: dict[str, str]):
    found = node_expectations(node_settings(plan_for(instance_type, ami="ami-0123456789abcdef0")))["frameworks"]
    assert list(found.items()) == list(expected.items())


def test_self_test_time_grows_with_processes_within_the_deployment_time():
    few, many = (
        node_expectations(node_settings(plan_for(name)))["self_test"] for name in ("trn1.2xlarge", "trn2.48xlarge")
    )
    assert few["seconds"] < many["seconds"] < many["all_seconds"]
    assert many["all_seconds"] < 60 * plan_for("trn2.48xlarge").node.timeout_minutes


def test_self_test_ports_are_above_the_ephemeral_range():
    for plan in every_plan():
        first = node_expectations(node_settings(plan))["self_test"]["first_port"]
        assert 60999 < first < first + plan.processes_per_node <= 65535, plan_id(plan)

"""Warnings about a valid plan of a cluster."""

import pytest

from tests.core.plans import RESERVATION, from_settings
from trainium_core.engines.ec2.warnings import cluster_warnings
from trainium_core.facts import facts

VPC = {"vpc_id": "vpc-0123456789abcdef0", "subnet_id": "subnet-0123456789abcdef0"}
TRAINIUM2 = {"instance_type": "trn2.48xlarge", "region": "us-east-2"}
IN_HYDERABAD = {"instance_type": "trn2.48xlarge", "region": "ap-south-2"}


PILOT = {"ends": "5d", "notify_email": "someone@example.com", "ami": "ami-0123456789abcdef0"}
XLA = facts()["image"]["ssm_parameter"]


def test_plan_with_end_email_and_image_has_no_warning() -> None:
    assert cluster_warnings(from_settings(nodes=2, **PILOT)) == {}


@pytest.mark.parametrize(
    ("setting", "settings", "says"),
    [
        ("ami", {**IN_HYDERABAD, "ami": XLA}, "copy an image there"),
        (
            "ami",
            {**TRAINIUM2, "ami": XLA},
            "since Neuron SDK 2.30, and shipped it until 2.31: specify the ID of an image",
        ),
        ("ami", {"ami": XLA}, "trn1.32xlarge has no other stack for PyTorch, so measure on Trainium2"),
        ("capacity", {"capacity": "capacity-block", "reservation_id": RESERVATION}, "it is not documented"),
        ("root_volume_gib", {"root_volume_gib": "100"}, "advises 512 GiB or more"),
        ("budget_usd", {"budget_usd": "500"}, "activated the cost allocation tag trn:cluster"),
    ],
)
def test_warning_is_reported_under_its_setting(setting: str, settings: dict[str, str], says: str) -> None:
    warnings = cluster_warnings(from_settings(**{**PILOT, **settings}))
    assert list(warnings) == [setting]
    assert says in warnings[setting]


@pytest.mark.parametrize(
    "settings",
    [
        {**IN_HYDERABAD, "ami": "ami-0123456789abcdef0"},
        {**IN_HYDERABAD, "ami": "/my/image"},
        {**VPC, "route_table_id": "rtb-0123456789abcdef0"},
    ],
)
def test_settings_without_a_problem_have_no_warning(settings: dict[str, str]) -> None:
    assert cluster_warnings(from_settings(**{**PILOT, **settings})) == {}


@pytest.mark.parametrize(
    ("settings", "until"),
    [
        ({}, "are billed until `trn sleep` runs or the stack is destroyed"),
        ({"idle_minutes": "60"}, "until `trn sleep` runs, they are unused for 60 minutes or the stack is destroyed"),
        ({"budget_usd": "500", "budget_action": "stop"}, "runs, the budget is spent or the stack is destroyed"),
        ({"capacity": "reservation", "reservation_id": RESERVATION}, "trn1.32xlarge run until `trn sleep` runs"),
    ],
    ids=["on demand", "idle", "budget", "reservation"],
)
def test_warning_of_a_missing_end_names_what_stops_the_nodes(settings: dict[str, str], until: str) -> None:
    warning = cluster_warnings(from_settings(nodes=2, **settings))["ends"]
    assert warning.startswith("no date ends the pilot: 2 x trn1.32xlarge ")
    assert until in warning


def test_capacity_block_does_not_require_an_end() -> None:
    block = from_settings(capacity="capacity-block", reservation_id=RESERVATION)
    assert "ends" not in cluster_warnings(block)

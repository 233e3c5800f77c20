"""Which zones a first deployment tries after one without capacity."""

from typing import Any

import pytest

from tests.core.plans import EXISTING_VPC, RESERVATION, from_settings
from trainium_core.capacity.other_zones import failed_for_capacity, is_undone, other_zones, zone_binding
from trainium_core.stacks.deployment_failure import DeploymentFailure, deployment_failure
from trainium_core.stacks.events import StackEvent

MISSING = (
    "Received response status [FAILED] from custom resource. Message returned: no capacity for 10 min: 0 of 2 "
    "nodes verified, 0 launched; last failed launch: We currently do not have sufficient trn1.32xlarge capacity in the "
    "Availability Zone you requested (us-west-2a). Our system will be working on provisioning additional capacity. "
    "Launching EC2 instance failed. (RequestId: 1)"
)


def failure(reason: str) -> DeploymentFailure:
    found = deployment_failure(
        [StackEvent(kind="Custom::TrnFleetReadiness", logical_id="Fleet", status="CREATE_FAILED", reason=reason)]
    )
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("reason", "statuses", "is_repeated"),
    [
        (MISSING, {"Cluster": "ROLLBACK_COMPLETE"}, True),
        (MISSING, {"Cluster": "ROLLBACK_COMPLETE", "Slurm": ""}, True),
        (MISSING, {"Cluster": "ROLLBACK_COMPLETE", "Slurm": "CREATE_COMPLETE"}, False),
        (MISSING, {"Cluster": "UPDATE_ROLLBACK_COMPLETE"}, False),
        (MISSING, {"Cluster": "ROLLBACK_FAILED"}, False),
        (MISSING, {"Cluster": "ROLLBACK_IN_PROGRESS"}, False),
        (MISSING, {"Cluster": "unknown"}, False),
        ("node i-0: neuron-ls shows 15 of 16 Neuron devices", {"Cluster": "ROLLBACK_COMPLETE"}, False),
    ],
)
def test_only_a_first_deployment_that_left_nothing_moves(
    reason: str, statuses: dict[str, str], is_repeated: bool
) -> None:
    assert failed_for_capacity([failure(reason)], statuses) is is_repeated


def test_deployment_without_any_stack_left_nothing() -> None:
    assert is_undone({"Cluster": ""})


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, ""),
        ({"capacity": "spot"}, ""),
        ({"availability_zone_id": "usw2-az4"}, "trn:availability_zone_id specifies this zone"),
        (EXISTING_VPC, "trn:subnet_id is in this zone"),
        ({"capacity": "capacity-block", "reservation_id": RESERVATION}, f"{RESERVATION} is in this zone"),
        ({"capacity": "reservation", "reservation_id": RESERVATION}, f"{RESERVATION} is in this zone"),
    ],
)
def test_zone_of_a_setting_or_a_reservation_is_kept(settings: dict[str, Any], says: str) -> None:
    assert says in zone_binding(from_settings(**settings))
    assert bool(says) == bool(zone_binding(from_settings(**settings)))


def test_untried_zones_that_offer_the_type_follow_in_the_order_of_the_catalogue() -> None:
    plan = from_settings(region="us-east-1")
    assert plan.zone_id == "use1-az4"
    offering = {"use1-az9", "use1-az6", "use1-az4"}
    assert other_zones(plan, offering, tried=["use1-az4"]) == ["use1-az6", "use1-az9"]
    assert other_zones(plan, offering, tried=offering) == []

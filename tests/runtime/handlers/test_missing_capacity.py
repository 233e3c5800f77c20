"""Custom::TrnFleetReadiness: a fleet for which AWS has no instances."""

from tests.runtime.handlers.conftest import CloudFormation, Run
from tests.runtime.handlers.fleet import NOON, Clock, Fleet, Lambda

NO_CAPACITY = "We currently do not have sufficient trn1.32xlarge capacity in the Availability Zone you requested."


def test_creation_without_capacity_fails_after_a_fifth_of_the_timeout(
    deploy: Run, fleet: Fleet, clock: Clock, cloudformation: CloudFormation
) -> None:
    fleet.add_launch("Failed", NO_CAPACITY)
    deploy(Nodes="3", TimeoutMinutes="30")
    assert cloudformation.response["Status"] == "FAILED"
    assert cloudformation.response["Reason"].startswith("no capacity for 6 min: 0 of 3 nodes verified, 2 launched; ")
    assert NO_CAPACITY in cloudformation.response["Reason"]
    assert 6 <= (clock.now - NOON.timestamp()) / 60 < 6.5


def test_update_without_capacity_waits_for_its_timeout(
    deploy: Run, fleet: Fleet, functions: Lambda, cloudformation: CloudFormation
) -> None:
    fleet.add_launch("Failed", NO_CAPACITY)
    deploy(request_type="Update", Nodes="3", TimeoutMinutes="30")
    assert cloudformation.bodies == []
    assert len(functions.events) == 1

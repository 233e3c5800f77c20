"""The response that CloudFormation waits for."""

import pytest

from tests.runtime.handlers.conftest import CloudFormation
from trainium_runtime.handlers.custom_resource import respond


def test_response_has_the_ids_of_its_request(cloudformation: CloudFormation) -> None:
    event = cloudformation.event("Create", {})
    respond(event, physical_id="group-1/readiness", data={"Summary": "2 of 2 nodes verified"})
    assert cloudformation.response == {
        "Status": "SUCCESS",
        "Reason": "",
        "PhysicalResourceId": "group-1/readiness",
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
        "Data": {"Summary": "2 of 2 nodes verified"},
    }


@pytest.mark.parametrize("character", ["x", "ü", "\n", '"', "\N{PILE OF POO}"])
def test_response_fits_into_the_4096_bytes_of_cloudformation(cloudformation: CloudFormation, character: str) -> None:
    respond(cloudformation.event("Create", {}), failure=f"node i-1: {character * 5000}", physical_id="x" * 200)
    assert len(cloudformation.bodies[0]) <= 4096
    assert cloudformation.response["Reason"].startswith(f"node i-1: {character * 100}")

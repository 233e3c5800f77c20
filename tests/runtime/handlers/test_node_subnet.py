"""Custom::TrnNodeSubnet: the subnet that it selects, and its message if no subnet is suitable."""

from typing import Any

import boto3
import pytest

from tests.runtime.handlers.conftest import CloudFormation
from trainium_runtime.handlers import node_subnet

SUBNETS = {"subnet-1": "usw2-az1", "subnet-2": "usw2-az4", "subnet-3": "usw2-az4"}


class Ec2:
    def describe_subnets(self, **parameters: list[str]) -> Any:
        return {"Subnets": [{"SubnetId": i, "AvailabilityZoneId": SUBNETS[i]} for i in parameters["SubnetIds"]]}

    def describe_instance_type_offerings(self, **parameters: Any) -> Any:
        assert parameters["LocationType"] == "availability-zone-id"
        (names,) = (entry["Values"] for entry in parameters["Filters"])
        return {"InstanceTypeOfferings": [{"Location": "usw2-az4"}] if names == ["trn1.32xlarge"] else []}


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch) -> None:
    def client(service: str) -> Ec2:
        assert service == "ec2"
        return Ec2()

    monkeypatch.setattr(boto3, "client", client)


def send_event(
    cloudformation: CloudFormation, kind: str, subnets: list[str], physical_id: str | None = None, **changed: str
) -> dict[str, Any]:
    properties = {"SubnetIds": subnets, "InstanceType": "trn1.32xlarge"}
    event = cloudformation.event(kind, {**properties, **changed}, physical_id)
    node_subnet.handle({**event, "OldResourceProperties": properties}, None)
    return cloudformation.responses[-1]


def test_first_subnet_in_a_zone_with_the_type_is_selected(cloudformation: CloudFormation) -> None:
    chosen = send_event(cloudformation, "Create", [*SUBNETS])
    assert (chosen["PhysicalResourceId"], chosen["Data"]) == ("subnet-2", {"SubnetId": "subnet-2"})


def test_selection_is_kept_while_its_subnet_is_given(cloudformation: CloudFormation) -> None:
    assert send_event(cloudformation, "Update", [*SUBNETS], "subnet-3")["PhysicalResourceId"] == "subnet-3"
    assert (
        send_event(cloudformation, "Update", ["subnet-1", "subnet-2"], "subnet-3")["PhysicalResourceId"] == "subnet-2"
    )


@pytest.mark.parametrize(("subnets", "kind"), [(["subnet-1"], "trn1.32xlarge"), ([*SUBNETS], "trn9.large")])
def test_no_subnet_in_a_zone_with_the_type_fails_with_zones(
    cloudformation: CloudFormation, subnets: list[str], kind: str
) -> None:
    failed = send_event(cloudformation, "Create", subnets, InstanceType=kind)
    assert failed["Status"] == "FAILED"
    assert f"a zone that offers {kind}: subnet-1 in usw2-az1" in failed["Reason"]
    assert ("do: usw2-az4. " if kind == "trn1.32xlarge" else "no zone of the region does. ") in failed["Reason"]


def test_deletion_gets_a_response(cloudformation: CloudFormation) -> None:
    assert send_event(cloudformation, "Delete", [*SUBNETS], "subnet-2")["Status"] == "SUCCESS"

"""Custom::TrnNodeSubnet: the subnet that it selects, and its message if no subnet is suitable."""

from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from trainium_runtime.handlers import node_subnet
from trainium_runtime.handlers.custom_resource import Result

SUBNETS = {"subnet-1": "usw2-az1", "subnet-2": "usw2-az4", "subnet-3": "usw2-az4"}
RESERVATION = "cr-0123456789abcdef0"


class Ec2:
    def describe_subnets(self, **parameters: list[str]) -> Any:
        return {"Subnets": [{"SubnetId": i, "AvailabilityZoneId": SUBNETS[i]} for i in parameters["SubnetIds"]]}

    def describe_instance_type_offerings(self, **parameters: Any) -> Any:
        assert parameters["LocationType"] == "availability-zone-id"
        (names,) = (entry["Values"] for entry in parameters["Filters"])
        return {"InstanceTypeOfferings": [{"Location": "usw2-az4"}] if names == ["trn1.32xlarge"] else []}

    def describe_capacity_reservations(self, **parameters: list[str]) -> Any:
        assert parameters["CapacityReservationIds"] == [RESERVATION]
        return {"CapacityReservations": [{"AvailabilityZoneId": "usw2-az1"}]}


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch) -> None:
    def client(service: str) -> Ec2:
        assert service == "ec2"
        return Ec2()

    monkeypatch.setattr(boto3, "client", client)


def provide(subnets: list[str], before: str | None = None, *, kind: str = "trn1.32xlarge") -> Result:
    """Create the resource, or update it with the selected subnet before."""
    event: dict[str, Any] = {"ResourceProperties": {"SubnetIds": subnets, "InstanceType": kind}}
    if before:
        event |= {"PhysicalResourceId": before, "OldResourceProperties": {"InstanceType": "trn1.32xlarge"}}
    return node_subnet.provide(event)


def test_first_subnet_in_a_zone_with_the_type_is_selected() -> None:
    assert provide([*SUBNETS]) == Result(physical_id="subnet-2", data={"SubnetId": "subnet-2"})


def test_selection_is_kept_while_its_subnet_is_given() -> None:
    assert provide([*SUBNETS], "subnet-3").physical_id == "subnet-3"
    assert provide(["subnet-1", "subnet-2"], "subnet-3").physical_id == "subnet-2"


@pytest.mark.parametrize(("subnets", "kind"), [(["subnet-1"], "trn1.32xlarge"), ([*SUBNETS], "trn9.large")])
def test_no_subnet_in_a_zone_with_the_type_fails_with_zones(subnets: list[str], kind: str) -> None:
    with pytest.raises(RuntimeError, match=f"a zone that offers {kind}: subnet-1 in usw2-az1") as failed:
        provide(subnets, kind=kind)
    assert ("do: usw2-az4. " if kind == "trn1.32xlarge" else "no zone of the region does. ") in str(failed.value)


def test_zone_of_the_reservation_decides_and_replaces_the_selection() -> None:
    wanted: dict[str, Any] = {"InstanceType": "trn1.32xlarge", "ReservationId": RESERVATION}
    changed = {"PhysicalResourceId": "subnet-2", "OldResourceProperties": {"InstanceType": "trn1.32xlarge"}}
    for before in ({}, changed):
        event = {"ResourceProperties": {**wanted, "SubnetIds": ["subnet-2", "subnet-1"]}, **before}
        assert node_subnet.provide(event).physical_id == "subnet-1"
    elsewhere = {"ResourceProperties": {**wanted, "SubnetIds": ["subnet-2", "subnet-3"]}}
    with pytest.raises(RuntimeError, match=f"a zone that has {RESERVATION}: subnet-2 in usw2-az4") as failed:
        node_subnet.provide(elsewhere)
    assert "do: usw2-az1. " in str(failed.value)


def test_update_keeps_a_given_subnet_if_the_reservation_has_ended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = ClientError({"Error": {"Code": "InvalidCapacityReservationId.NotFound"}}, "DescribeCapacityReservations")

    def describe(_self: Ec2, **_parameters: list[str]) -> Any:
        raise ended

    monkeypatch.setattr(Ec2, "describe_capacity_reservations", describe)
    wanted = {"InstanceType": "trn1.32xlarge", "ReservationId": RESERVATION, "SubnetIds": ["subnet-1", "subnet-2"]}
    changed = {"ResourceProperties": wanted, "OldResourceProperties": {"InstanceType": "trn1.32xlarge"}}
    assert node_subnet.provide({**changed, "PhysicalResourceId": "subnet-2"}).physical_id == "subnet-2"
    assert "subnet-2 is kept: " in capsys.readouterr().out
    for event in ({**changed, "PhysicalResourceId": "subnet-3"}, {"ResourceProperties": wanted}):
        with pytest.raises(RuntimeError, match=f"of {RESERVATION} could not be read: "):
            node_subnet.provide(event)

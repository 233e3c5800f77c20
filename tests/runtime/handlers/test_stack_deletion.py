"""The function that deletes the stack, which checks the end of the pilot itself."""

from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.runtime.handlers.fleet import NOON, STACK_ID, Clock, Stack
from trainium_runtime.handlers import stack_deletion


class Deletions(Stack):
    """CloudFormation, which records the deletions that it accepts."""

    def __init__(self, refusal: str = "") -> None:
        super().__init__()
        self.deleted: list[str] = []
        self._refusal = refusal

    def delete_stack(self, **parameters: str) -> None:
        if self._refusal:
            raise ClientError({"Error": {"Code": "ValidationError", "Message": self._refusal}}, "DeleteStack")
        self.deleted.append(parameters["StackName"])


class Reservations:
    """EC2 with one Capacity Block, which begins ten days after the deployment."""

    def describe_capacity_reservations(self, **_: Any) -> dict[str, Any]:
        times = {"StartDate": NOON + timedelta(days=10), "EndDate": NOON + timedelta(days=11)}
        return {"CapacityReservations": [{"State": "scheduled", "InstanceType": "trn2.48xlarge", **times}]}


def run(monkeypatch: pytest.MonkeyPatch, stack: Deletions, hours: float, ends: str = "100h", **more: str) -> None:
    """Run the function at a number of hours after the deployment."""
    for name, value in {"STACK_ID": STACK_ID, "ENDS": ends, **more}.items():
        monkeypatch.setenv(name, value)

    clients = {"cloudformation": stack, "ec2": Reservations()}
    monkeypatch.setattr("boto3.client", clients.__getitem__)

    monkeypatch.setattr(stack_deletion, "time", Clock(now=NOON.timestamp() + 3600 * hours))
    stack_deletion.handle({}, None)


@pytest.mark.parametrize("ends", ["100h", "2026-11-25T16:00Z"])
def test_stack_is_deleted_at_the_end_and_not_before(monkeypatch: pytest.MonkeyPatch, ends: str) -> None:
    stack = Deletions()
    with pytest.raises(RuntimeError, match="the pilot ends at 2026-11-25T16:00Z"):
        run(monkeypatch, stack, 99.9, ends)
    assert stack.deleted == []
    run(monkeypatch, stack, 100, ends)
    assert stack.deleted == [STACK_ID]


def test_stack_is_not_deleted_before_the_capacity_block_has_lasted_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = Deletions()
    with pytest.raises(RuntimeError, match="the pilot ends at 2026-12-01T20:00Z"):
        run(monkeypatch, stack, 10 * 24 + 7.9, "8h", CAPACITY_BLOCK="cr-1")
    assert stack.deleted == []
    run(monkeypatch, stack, 10 * 24 + 8, "8h", CAPACITY_BLOCK="cr-1")
    assert stack.deleted == [STACK_ID]


def test_end_at_a_set_time_does_not_depend_on_ec2(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_self: Reservations, **_: Any) -> dict[str, Any]:
        raise ClientError({"Error": {"Code": "UnauthorizedOperation"}}, "DescribeCapacityReservations")

    monkeypatch.setattr(Reservations, "describe_capacity_reservations", refuse)
    stack = Deletions()
    run(monkeypatch, stack, 100, "2026-11-25T16:00Z", CAPACITY_BLOCK="cr-1")
    assert stack.deleted == [STACK_ID]


def test_error_is_the_reason_of_cloudformation(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match=r"^TerminationProtection is enabled$"):
        run(monkeypatch, Deletions("TerminationProtection is enabled"), 100)

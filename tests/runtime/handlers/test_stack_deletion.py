"""The function that deletes the stack, which checks the end of the pilot itself."""

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


def run(monkeypatch: pytest.MonkeyPatch, stack: Deletions, hours: float, ends: str = "100h") -> None:
    """Run the function at a number of hours after the deployment."""
    for name, value in {"STACK_ID": STACK_ID, "ENDS": ends}.items():
        monkeypatch.setenv(name, value)

    def client(service: str) -> Any:
        assert service == "cloudformation"
        return stack

    monkeypatch.setattr("boto3.client", client)
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


def test_error_is_the_reason_of_cloudformation(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match=r"^TerminationProtection is enabled$"):
        run(monkeypatch, Deletions("TerminationProtection is enabled"), 100)

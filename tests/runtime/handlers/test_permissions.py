"""Retries until permissions that the same deployment grants are effective."""

from collections.abc import Callable

import pytest
from botocore.exceptions import ClientError

from trainium_runtime.handlers import permissions


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permissions, "_PAUSE_S", 0.01)
    monkeypatch.setattr(permissions, "_TIMEOUT_S", 60)


def refused(times: int, code: str = "AccessDenied") -> Callable[[], str]:
    """A call that is denied this many times and then succeeds."""
    responses = [ClientError({"Error": {"Code": code}}, "PutObject")] * times

    def action() -> str:
        if responses:
            raise responses.pop()
        return "done"

    return action


def test_denied_call_is_retried_until_it_is_allowed() -> None:
    assert permissions.retry_until_permitted(refused(3)) == "done"


def test_permanent_denial_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permissions, "_TIMEOUT_S", 0.1)
    with pytest.raises(ClientError):
        permissions.retry_until_permitted(refused(10_000))


def test_only_a_denial_is_retried() -> None:
    with pytest.raises(ClientError):
        permissions.retry_until_permitted(refused(1, code="NoSuchBucket"))

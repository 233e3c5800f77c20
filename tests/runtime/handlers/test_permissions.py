"""Permissions that are given in the same deployment, and are not known everywhere yet."""

from collections.abc import Callable

import pytest
from botocore.exceptions import ClientError

from trainium_runtime.handlers import permissions


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permissions, "_PAUSE_S", 0.01)
    monkeypatch.setattr(permissions, "_TIMEOUT_S", 60)


def refused(times: int, code: str = "AccessDenied") -> Callable[[], str]:
    """What is refused so many times, and then done."""
    responses = [ClientError({"Error": {"Code": code}}, "PutObject")] * times

    def action() -> str:
        if responses:
            raise responses.pop()
        return "done"

    return action


def test_what_is_denied_at_first_is_done_once_it_is_permitted() -> None:
    assert permissions.retry_until_permitted(refused(3)) == "done"


def test_what_stays_denied_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permissions, "_TIMEOUT_S", 0.1)
    with pytest.raises(ClientError):
        permissions.retry_until_permitted(refused(10_000))


def test_nothing_but_a_denial_is_waited_for() -> None:
    with pytest.raises(ClientError):
        permissions.retry_until_permitted(refused(1, code="NoSuchBucket"))

"""Custom::TrnQuotaCheck: its result for each result of the quota check, always in time."""

import threading
from dataclasses import dataclass
from typing import Any

import pytest

from tests.core.fake_quotas import FakeQuotas
from trainium_core import Plan
from trainium_core.engines.ec2.checks.quota_check import check_quota
from trainium_core.quotas.ec2 import quota_need
from trainium_runtime import aws_quotas as quotas
from trainium_runtime.handlers import quota_check
from trainium_runtime.handlers.custom_resource import Result
from trainium_runtime.quota import RunningInstance

ROOM = FakeQuotas(limit=256)
NO_ROOM = FakeQuotas(limit=255)
UNAVAILABLE = FakeQuotas(unavailable={"quota"})


def plan(**settings: Any) -> Plan:
    return Plan.of(**{"instance_type": "trn1.32xlarge", "region": "us-west-2", "nodes": 2, **settings})


def properties(**settings: Any) -> dict[str, str]:
    """The properties of a plan's quota check, as CloudFormation passes them: as text."""
    need = quota_need(plan(**settings))
    assert need is not None
    return {key: str(value) for key, value in need.to_properties().items()}


@dataclass
class Clock:
    """A clock that advances only in `sleep`."""

    now: float = 0
    sleeps: int = 0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.sleeps += 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(quota_check, "time", clock)
    return clock


def provide(
    monkeypatch: pytest.MonkeyPatch, *accounts: Any, before: dict[str, str] | None = None, **settings: Any
) -> Result:
    """Create the resource for a plan, or update it.

    Args:
        monkeypatch: Replaces the account.
        accounts: Each attempt reads the next of them; the last one is repeated.
        before: The properties before an update. Default: none; the resource is created.
        settings: The settings of the plan.
    """
    remaining = list(accounts)

    def account_in(region: str) -> Any:
        assert region == "us-west-2"
        account = remaining.pop(0) if len(remaining) > 1 else remaining[0]
        if isinstance(account, Exception):
            raise account
        return account

    monkeypatch.setattr(quotas, "AwsQuotas", account_in)
    event: dict[str, Any] = {
        "RequestType": "Create",
        "StackId": "stack-1",
        "ResourceProperties": properties(**settings),
    }
    if before is not None:
        event |= {"RequestType": "Update", "OldResourceProperties": before}
    return quota_check.provide(event)


def test_sufficient_quota_continues_the_deployment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert provide(monkeypatch, ROOM) == Result(physical_id="trn-pilot/quota")


def test_insufficient_quota_fails_with_the_text_of_preflight(monkeypatch: pytest.MonkeyPatch) -> None:
    output = check_quota(plan(), NO_ROOM)
    with pytest.raises(RuntimeError) as failed:
        provide(monkeypatch, NO_ROOM)
    assert all(part in str(failed.value) for part in (output.found, output.needed, output.fix))


def test_unavailable_quota_is_retried_and_fails_with_workaround(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    with pytest.raises(RuntimeError, match="no answer about quota") as failed:
        provide(monkeypatch, UNAVAILABLE)
    assert "set trn:quota_check to off (in an app: quota_check=False)" in str(failed.value)
    assert 0 < clock.now <= 60


def test_permission_that_takes_effect_late_is_retried(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    provide(monkeypatch, UNAVAILABLE, UNAVAILABLE, ROOM)
    assert clock.sleeps == 2


def test_update_to_more_nodes_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota_check, "is_rolling_back", lambda _: False)
    with pytest.raises(RuntimeError, match="are needed"):
        provide(monkeypatch, ROOM, before=properties(nodes=2), nodes=3)


def test_rollback_to_more_nodes_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota_check, "is_rolling_back", lambda _: True)
    provide(monkeypatch, NO_ROOM, before=properties(nodes=2), nodes=3)


@pytest.mark.parametrize("nodes", [1, 2])
def test_update_that_needs_no_more_is_not_checked(monkeypatch: pytest.MonkeyPatch, nodes: int) -> None:
    provide(monkeypatch, FakeQuotas(limit=0), before=properties(nodes=2), nodes=nodes)


def test_running_nodes_of_a_renamed_cluster_are_not_counted_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota_check, "is_rolling_back", lambda _: False)
    account = FakeQuotas(limit=384, running=[RunningInstance(vcpus=256, capacity="on-demand", cluster="old")])
    before = properties(cluster_name="old", nodes=2)
    provide(monkeypatch, account, before=before, cluster_name="new", nodes=3)
    provide(monkeypatch, FakeQuotas(limit=0), before=before, cluster_name="new")


def test_update_from_unknown_properties_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="could not be read"):
        provide(monkeypatch, ROOM, before={})


def test_error_fails_with_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="out of luck"):
        provide(monkeypatch, RuntimeError("out of luck"))


def test_hanging_aws_call_is_answered_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota_check, "LONGEST_S", 0.1)
    released = threading.Event()

    class Hanging(FakeQuotas):
        def _check_available(self, question: str) -> None:  # noqa: ARG002
            released.wait(30)

    try:
        with pytest.raises(RuntimeError, match="gave no answer within"):
            provide(monkeypatch, Hanging())
    finally:
        released.set()

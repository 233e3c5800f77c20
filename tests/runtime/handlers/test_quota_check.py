"""Custom::TrnQuotaGate: its response to each result of the quota check, always in time."""

import threading
from dataclasses import dataclass
from typing import Any

import pytest

from tests.core.fake_quotas import FakeQuotas
from tests.runtime.handlers.conftest import CloudFormation
from trainium_core import Plan
from trainium_core.engines.ec2.checks.quota_check import check_quota
from trainium_core.quotas.ec2 import quota_need
from trainium_runtime import aws_quotas as quotas
from trainium_runtime.handlers import quota_check

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
class Context:
    """Lambda's context of an invocation with this many seconds left."""

    seconds: float = 120

    def get_remaining_time_in_millis(self) -> float:
        return 1000 * self.seconds


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


def run(monkeypatch: pytest.MonkeyPatch, event: dict[str, Any], *accounts: Any, context: Context | None = None) -> None:
    """Run the handler. Each attempt reads the next of the accounts; the last one is repeated."""
    remaining = list(accounts)

    def account_in(region: str) -> Any:
        assert region == "us-west-2"
        account = remaining.pop(0) if len(remaining) > 1 else remaining[0]
        if isinstance(account, Exception):
            raise account
        return account

    monkeypatch.setattr(quotas, "AwsQuotas", account_in)
    quota_check.handle(event, context or Context())


def test_sufficient_quota_continues_the_deployment(
    monkeypatch: pytest.MonkeyPatch, cloudformation: CloudFormation
) -> None:
    run(monkeypatch, cloudformation.event("Create", properties()), ROOM)
    assert cloudformation.response["Status"] == "SUCCESS"
    assert cloudformation.response["PhysicalResourceId"] == "trn-pilot/quota"


def test_insufficient_quota_fails_with_the_text_of_preflight(
    monkeypatch: pytest.MonkeyPatch, cloudformation: CloudFormation
) -> None:
    run(monkeypatch, cloudformation.event("Create", properties()), NO_ROOM)
    output = check_quota(plan(), NO_ROOM)
    assert cloudformation.response["Status"] == "FAILED"
    assert all(part in cloudformation.response["Reason"] for part in (output.found, output.needed, output.fix))


def test_unavailable_quota_is_retried_and_fails_with_workaround(
    monkeypatch: pytest.MonkeyPatch, cloudformation: CloudFormation, clock: Clock
) -> None:
    run(monkeypatch, cloudformation.event("Create", properties()), UNAVAILABLE)
    assert cloudformation.response["Status"] == "FAILED"
    assert "no answer about quota" in cloudformation.response["Reason"]
    assert "set trn:quota_check to off (in an app: quota_check=False)" in cloudformation.response["Reason"]
    assert 0 < clock.now <= 60


def test_permission_that_takes_effect_late_is_retried(
    monkeypatch: pytest.MonkeyPatch, cloudformation: CloudFormation, clock: Clock
) -> None:
    run(monkeypatch, cloudformation.event("Create", properties()), UNAVAILABLE, UNAVAILABLE, ROOM)
    assert cloudformation.response["Status"] == "SUCCESS"
    assert clock.sleeps == 2


def test_update_to_more_nodes_is_checked(monkeypatch: pytest.MonkeyPatch, cloudformation: CloudFormation) -> None:
    event = cloudformation.event("Update", properties(nodes=3), "trn-pilot/quota")
    event["OldResourceProperties"] = properties(nodes=2)
    run(monkeypatch, event, ROOM)
    assert cloudformation.response["Status"] == "FAILED"


def test_rollback_to_more_nodes_is_not_checked(monkeypatch: pytest.MonkeyPatch, cloudformation: CloudFormation) -> None:
    event = cloudformation.event("Update", properties(nodes=3), "trn-pilot/quota")
    event["OldResourceProperties"] = properties(nodes=2)
    monkeypatch.setattr(quota_check, "is_rolling_back", lambda _: True)
    run(monkeypatch, event, NO_ROOM)
    assert cloudformation.response["Status"] == "SUCCESS"


@pytest.mark.parametrize("nodes", [1, 2])
def test_update_that_needs_no_more_is_not_checked(
    monkeypatch: pytest.MonkeyPatch, cloudformation: CloudFormation, nodes: int
) -> None:
    event = cloudformation.event("Update", properties(nodes=nodes), "trn-pilot/quota")
    event["OldResourceProperties"] = properties(nodes=2)
    run(monkeypatch, event, FakeQuotas(limit=0))
    assert cloudformation.response["Status"] == "SUCCESS"


def test_update_from_unknown_properties_gets_a_response(
    monkeypatch: pytest.MonkeyPatch, cloudformation: CloudFormation
) -> None:
    event = cloudformation.event("Update", properties(), "trn-pilot/quota")
    event["OldResourceProperties"] = {}
    run(monkeypatch, event, ROOM)
    assert cloudformation.response["Status"] == "FAILED"


def test_delete_is_not_checked(monkeypatch: pytest.MonkeyPatch, cloudformation: CloudFormation) -> None:
    run(monkeypatch, cloudformation.event("Delete", properties(), "trn-pilot/quota"), NO_ROOM)
    assert cloudformation.response["Status"] == "SUCCESS"
    assert cloudformation.response["PhysicalResourceId"] == "trn-pilot/quota"


def test_error_is_a_failed_response(monkeypatch: pytest.MonkeyPatch, cloudformation: CloudFormation) -> None:
    run(monkeypatch, cloudformation.event("Create", properties()), RuntimeError("out of luck"))
    assert cloudformation.response["Status"] == "FAILED"
    assert "out of luck" in cloudformation.response["Reason"]


def test_hanging_aws_call_is_answered_before_lambda_times_out(
    monkeypatch: pytest.MonkeyPatch, cloudformation: CloudFormation
) -> None:
    released = threading.Event()

    class Hanging(FakeQuotas):
        def _check_available(self, question: str) -> None:  # noqa: ARG002
            released.wait(30)

    try:
        run(monkeypatch, cloudformation.event("Create", properties()), Hanging(), context=Context(seconds=15.2))
    finally:
        released.set()
    assert cloudformation.response["Status"] == "FAILED"
    assert "gave no answer within" in cloudformation.response["Reason"]

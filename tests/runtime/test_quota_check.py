"""The quota check: unknown values never pass, and every obstacle is reported with a workaround."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.fake_quotas import FakeQuotas
from tests.core.plans import RESERVATION, from_settings
from tests.core.test_catalog_overlay import TOMORROW
from trainium_core.engines.ec2.checks.quota_check import check_quota
from trainium_runtime.check_result import CheckResult
from trainium_runtime.errors import UnavailableError
from trainium_runtime.quota import QuotaRequest, RunningInstance

FRIDAY = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)


def checked(account: FakeQuotas, **settings: Any) -> CheckResult:
    """The result for a plan of two nodes, 256 vCPUs."""
    return check_quota(from_settings(nodes=2, **settings), account)


def running(vcpus: int, capacity: str = "on-demand", cluster: str | None = None) -> RunningInstance:
    return RunningInstance(vcpus=vcpus, capacity=capacity, cluster=cluster)


def request(desired: float, status: str = "PENDING") -> QuotaRequest:
    return QuotaRequest(request_id="r-1", desired=desired, status=status, created=FRIDAY)


def test_exact_room_passes_with_the_numbers() -> None:
    answer = checked(FakeQuotas(limit=384, running=[running(128)]))
    assert answer == CheckResult(
        outcome="pass",
        found="256 of 384 vCPUs of L-2C3B7624, Running On-Demand Trn instances, in us-west-2, are free (128 run)",
        needed="256 vCPUs",
    )


def test_missing_vcpu_fails_with_limit_to_request_and_nodes_that_fit() -> None:
    answer = checked(FakeQuotas(limit=383, running=[running(128)]))
    assert (answer.outcome, answer.needed) == ("fail", "256 vCPUs")
    assert answer.fix == (
        "request 384 vCPUs with `trn quota request` or in Service Quotas; or set trn:nodes (in an app: nodes) to 1"
    )


def test_nodes_of_the_same_cluster_are_not_counted_twice() -> None:
    answer = checked(FakeQuotas(running=[running(256, cluster="trn-pilot")]))
    assert answer.outcome == "pass"
    assert answer.found.startswith("0 of 256 vCPUs of L-2C3B7624")
    assert answer.found.endswith("; 256 of the needed vCPUs are already in use by the cluster")
    assert checked(FakeQuotas(running=[running(256, cluster="another")])).outcome == "fail"


def test_room_that_capacity_blocks_may_use_is_unknown() -> None:
    in_block = [running(128, "capacity-block")]
    assert checked(FakeQuotas(limit=255, running=in_block)).outcome == "fail"
    assert checked(FakeQuotas(limit=384, running=in_block)).outcome == "pass"
    answer = checked(FakeQuotas(limit=256, running=in_block))
    assert answer.outcome == "unknown"
    assert "128 more run in Capacity Blocks, which may count as well" in answer.found
    assert "request 384 vCPUs" in answer.fix


def test_unused_reservation_counts_and_can_be_launched_into() -> None:
    answer = checked(FakeQuotas(reserved=128))
    assert answer.outcome == "fail"
    assert "(128 are reserved and unused)" in answer.found
    assert answer.fix.endswith("launch into the reservation with trn:capacity=reservation")


def test_usage_only_in_the_metric_of_aws_counts() -> None:
    answer = checked(FakeQuotas(limit=384, running=[running(64)], metered=192))
    assert answer.outcome == "fail"
    assert "(64 run, 128 more by AWS's metric, which lags by minutes)" in answer.found


def test_metered_use_of_ended_instances_is_not_counted() -> None:
    ended = [running(256), running(64, "spot")]
    assert checked(FakeQuotas(metered=256, ended=ended)).outcome == "pass"
    assert checked(FakeQuotas(metered=257, ended=ended)).outcome == "fail"


@pytest.mark.parametrize(
    ("open_request", "fix"),
    [
        (request(256), "wait for the increase: `trn quota status` shows its status"),
        (request(128), "ask AWS Support to raise that request to 256: only one request can be open"),
    ],
)
def test_requested_increase_is_shown_and_waited_for(open_request: QuotaRequest, fix: str) -> None:
    answer = checked(FakeQuotas(limit=0, requests=[open_request]))
    assert f"an increase to {open_request.desired} is requested: PENDING since 2026-11-20" in answer.found
    assert answer.fix == fix


def test_missing_room_is_certain_without_the_requests() -> None:
    answer = checked(FakeQuotas(limit=0, unavailable={"requests"}))
    assert answer.outcome == "fail"
    assert answer.found.endswith("open requests for an increase are unknown: no answer about requests")


def test_sufficient_quota_reads_no_open_requests() -> None:
    assert checked(FakeQuotas(unavailable={"requests"})).outcome == "pass"


@pytest.mark.parametrize("question", ["quota", "metric", "instances", "reservations"])
def test_failed_call_does_not_pass(question: str) -> None:
    with pytest.raises(UnavailableError, match=f"no answer about {question}"):
        checked(FakeQuotas(limit=10_000, unavailable={question}))


def test_metric_unexplained_after_a_failed_call_does_not_pass() -> None:
    with pytest.raises(UnavailableError, match="no answer about ended"):
        checked(FakeQuotas(metered=1, unavailable={"ended"}))


def test_region_without_the_quota_is_unknown() -> None:
    with pytest.raises(UnavailableError, match="Service Quotas in us-west-2 has no quota L-2C3B7624"):
        checked(FakeQuotas(limit=None))


def test_capacity_block_is_a_warning_without_a_documented_quota() -> None:
    assert checked(FakeQuotas(limit=0), capacity="capacity-block", reservation_id=RESERVATION).outcome == "warn"


def test_reservation_was_counted_when_it_was_created() -> None:
    assert checked(FakeQuotas(limit=0), capacity="reservation", reservation_id=RESERVATION).outcome == "pass"


def test_type_whose_quota_has_no_source_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(TOMORROW.replace("trn9", "xyz9"))
    plan = from_settings(instance_type="xyz9.96xlarge", region="eu-north-1", catalog=str(tmp_path / "mine.toml"))
    assert check_quota(plan, FakeQuotas()).outcome == "unknown"


some = st.lists(st.builds(running, st.integers(1, 192), st.sampled_from(["on-demand", "spot", "capacity-block"])))


@given(
    limit=st.integers(0, 1000),
    instances=some,
    reserved=st.integers(0, 300),
    metered=st.none() | st.integers(0, 1000),
    ended=some,
    capacity=st.sampled_from(["on-demand", "spot"]),
)
def test_pass_always_has_room_for_the_visible_usage(
    limit: int,
    instances: list[RunningInstance],
    reserved: int,
    metered: int | None,
    ended: list[RunningInstance],
    capacity: str,
) -> None:
    account = FakeQuotas(limit=limit, running=instances, reserved=reserved, metered=metered, ended=ended)
    answer = checked(account, capacity=capacity)
    counted = {capacity, "capacity-block"} if capacity == "on-demand" else {capacity}
    seen = sum(i.vcpus for i in instances if i.capacity in counted) + (reserved if capacity == "on-demand" else 0)
    if answer.outcome == "pass":
        assert seen + 256 <= limit
    else:
        assert answer.fix

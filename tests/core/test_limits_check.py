"""Whether the plan's addresses, gateways, volumes and network interfaces are within the quotas."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.fake_account import FakeAccount
from tests.core.findings import finding_of
from tests.core.plans import plans
from trainium_core.aws.resource_use import UsedAmount
from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_core.preflight.limits_check import LIMITS, judge_limit
from trainium_runtime.quota import Quota

CLOSED: dict[str, Any] = {"egress": "vpc-endpoints"}


def test_every_limit_of_the_facts_is_checked() -> None:
    assert set(LIMITS) == {key for key, value in facts()["limits"].items() if isinstance(value, dict)}


@pytest.mark.parametrize("key", LIMITS)
def test_full_limit_fails(key: str) -> None:
    full = {key: facts()["limits"][key]["default"]}
    finding = finding_of("limits", FakeAccount(in_use=full))
    assert finding.outcome == "fail"
    assert facts()["limits"][key]["code"] in finding.fix
    assert finding.found == f"used by others: {full[key]} of {full[key]} {LIMITS[key].many}"


@pytest.mark.parametrize("key", LIMITS)
def test_missing_quota_is_unknown(key: str) -> None:
    finding = finding_of("limits", FakeAccount(limits={key: None}))
    assert finding.outcome == "unknown"
    assert (
        finding.found
        == f"Service Quotas in us-west-2 has no quota {facts()['limits'][key]['code']}, "
        + (facts()["limits"][key]["name"])
    )


@pytest.mark.parametrize(("used", "outcome"), [(4000, "unknown"), (4985, "fail")])
def test_incomplete_count_never_passes(used: int, outcome: str) -> None:
    account = FakeAccount(in_use={"network_interfaces": used}, uncounted={"network_interfaces"})
    finding = finding_of("limits", account)
    assert finding.outcome == outcome
    assert f"at least {used} of 5000 network interfaces" in finding.found


def test_fewer_nodes_are_suggested_if_they_fit() -> None:
    finding = finding_of("limits", FakeAccount(in_use={"network_interfaces": 4985}))
    assert finding.fix.endswith("(service vpc) from Service Quotas; or set trn:nodes to 1")
    assert "request 5001 for L-DF5E4CA3" in finding.fix
    assert "trn:nodes" not in finding_of("limits", FakeAccount(in_use={"network_interfaces": 4999})).fix


def test_address_and_nat_gateway_limits_are_checked_with_nat_egress() -> None:
    needed = "1 Elastic IP; 1 NAT gateway in the zone"
    assert needed in finding_of("limits", FakeAccount()).needed
    assert "NAT" not in finding_of("limits", FakeAccount(), **CLOSED).needed
    assert needed in finding_of("limits", FakeAccount(), stacks="pcs").needed
    assert "2 Elastic IPs; 2 NAT gateways" in finding_of("limits", FakeAccount(), stacks="cluster,pcs").needed


@given(plan=plans(), used=st.integers(0, 6000), limit=st.integers(0, 6000), complete=st.booleans())
@pytest.mark.parametrize("key", ["gp3_storage", "network_interfaces"])
def test_limit_passes_only_with_room_and_suggests_a_fit(
    key: str, plan: Plan, used: int, limit: int, complete: bool
) -> None:
    quota = Quota(code="L-1", name="x", limit=limit)
    answer = judge_limit(key, plan, quota=quota, use=UsedAmount(amount=used, complete=complete))
    fits = used + LIMITS[key].need(plan) <= limit
    assert answer.outcome == ("fail" if not fits else "pass" if complete else "unknown")
    _, suggested, nodes = answer.fix.partition("set trn:nodes to ")
    if suggested:
        each = LIMITS[key].need(plan) / plan.nodes
        assert math.isclose(used + int(nodes) * each, limit, abs_tol=each)
        assert used + int(nodes) * each <= limit + 1e-9

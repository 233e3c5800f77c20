"""Whether addresses, gateways, volumes and network interfaces of the plan are within the quotas."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.fake_account import FakeAccount
from tests.core.findings import found
from tests.core.plans import OWN_VPC, from_settings, plans
from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_core.plan.network_layout import network_interfaces
from trainium_core.preflight.limits_check import LIMITS, judge_limit
from trainium_core.preflight.runner import preflight
from trainium_core.quotas.resource_use import Use
from trainium_runtime.quota import Quota

WITH_NAT: dict[str, Any] = {"egress": "nat-gateway"}
SETTINGS = {key: WITH_NAT if key in ("elastic_ips", "nat_gateways") else {} for key in LIMITS}
"""Settings of a plan that needs something of a limit."""


def test_every_limit_of_the_facts_is_checked() -> None:
    assert set(LIMITS) == {key for key, value in facts()["limits"].items() if isinstance(value, dict)}


def test_within_the_defaults_of_aws_a_plan_passes_and_says_what_it_needs() -> None:
    finding = found("limits", FakeAccount(in_use={"gp3_storage": 1.5, "network_interfaces": 7}))
    assert finding.outcome == "pass"
    assert finding.found == (
        "used by others: 1.5 of 50 TiB of gp3 storage; 7 of 5000 network interfaces; 0 of 20 gateway endpoints"
    )
    assert finding.needed == "1 TiB of gp3 storage; 16 network interfaces; 1 gateway endpoint"


@pytest.mark.parametrize("key", LIMITS)
def test_each_limit_must_have_room(key: str) -> None:
    full = {key: facts()["limits"][key]["default"]}
    finding = found("limits", FakeAccount(in_use=full), **SETTINGS[key])
    assert finding.outcome == "fail"
    assert facts()["limits"][key]["code"] in finding.fix
    assert finding.found == f"used by others: {full[key]} of {full[key]} {LIMITS[key].many}"


@pytest.mark.parametrize("key", LIMITS)
def test_a_quota_that_is_not_there_is_unknown(key: str) -> None:
    finding = found("limits", FakeAccount(limits={key: None}), **SETTINGS[key])
    assert finding.outcome == "unknown"
    assert (
        finding.found
        == f"Service Quotas in us-west-2 knows no {facts()['limits'][key]['code']}, " + (facts()["limits"][key]["name"])
    )


@pytest.mark.parametrize("key", LIMITS)
def test_what_is_not_counted_is_unknown(key: str) -> None:
    finding = found("limits", FakeAccount(unavailable={key}), **SETTINGS[key])
    assert (finding.outcome, finding.found) == ("unknown", f"no answer about {key}")


def test_what_is_not_counted_does_not_hide_what_has_no_room() -> None:
    finding = found("limits", FakeAccount(unavailable={"gp3_storage"}, in_use={"network_interfaces": 5000}))
    assert finding.outcome == "fail"
    assert "no answer about gp3_storage" in finding.found


@pytest.mark.parametrize(("used", "outcome"), [(4000, "unknown"), (4985, "fail")])
def test_more_than_was_counted_never_passes(used: int, outcome: str) -> None:
    account = FakeAccount(in_use={"network_interfaces": used}, uncounted={"network_interfaces"})
    finding = found("limits", account)
    assert finding.outcome == outcome
    assert f"at least {used} of 5000 network interfaces" in finding.found


def test_fewer_nodes_are_suggested_where_they_fit() -> None:
    finding = found("limits", FakeAccount(in_use={"network_interfaces": 4985}))
    assert finding.fix.endswith("(service vpc); or set trn:nodes to 1")
    assert "ask Service Quotas for 5001 of L-DF5E4CA3" in finding.fix
    assert "trn:nodes" not in found("limits", FakeAccount(in_use={"network_interfaces": 4999})).fix


def test_addresses_and_nat_gateways_are_checked_where_one_is_made() -> None:
    one = "1 Elastic IP; 1 NAT gateway in the zone"
    assert one in found("limits", FakeAccount(), **WITH_NAT).needed
    assert "NAT" not in found("limits", FakeAccount()).needed
    assert one in found("limits", FakeAccount(), stacks="hyperpod").needed
    assert (
        "2 Elastic IPs; 2 NAT gateways" in found("limits", FakeAccount(), stacks="cluster,hyperpod", **WITH_NAT).needed
    )


def test_in_a_vpc_of_ones_own_a_route_table_takes_a_gateway_endpoint() -> None:
    assert "endpoint" not in found("limits", FakeAccount(), **OWN_VPC).needed
    with_one = found("limits", FakeAccount(), **OWN_VPC, route_table_id="rtb-0123456789abcdef0")
    assert "1 gateway endpoint" in with_one.needed


def test_a_plan_that_makes_nothing_of_the_kind_is_not_checked() -> None:
    checks = [finding.check for finding in preflight(from_settings(stacks="sagemaker"), FakeAccount())]
    assert "limits" not in checks


@given(plan=plans())
def test_nodes_need_their_volumes_and_interfaces(plan: Plan) -> None:
    assert LIMITS["network_interfaces"].need(plan) == plan.nodes * len(network_interfaces(plan))
    assert LIMITS["gp3_storage"].need(plan) == plan.nodes * plan.root_volume_gib / 1024


@given(plan=plans(), used=st.integers(0, 6000), limit=st.integers(0, 6000), complete=st.booleans())
@pytest.mark.parametrize("key", ["gp3_storage", "network_interfaces"])
def test_it_passes_only_with_room_and_the_nodes_it_suggests_fit(
    key: str, plan: Plan, used: int, limit: int, complete: bool
) -> None:
    quota = Quota(code="L-1", name="x", limit=limit)
    answer = judge_limit(key, plan, quota=quota, use=Use(amount=used, complete=complete))
    fits = used + LIMITS[key].need(plan) <= limit
    assert answer.outcome == ("fail" if not fits else "pass" if complete else "unknown")
    _, suggested, nodes = answer.fix.partition("set trn:nodes to ")
    if suggested:
        each = LIMITS[key].need(plan) / plan.nodes
        assert math.isclose(used + int(nodes) * each, limit, abs_tol=each)
        assert used + int(nodes) * each <= limit + 1e-9

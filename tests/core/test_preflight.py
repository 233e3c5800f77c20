"""What preflight makes of an account. Unknown is never ready, and every obstacle comes with a way round it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.fake_account import IMAGE, FakeAccount
from tests.core.plans import RESERVATION, from_settings
from tests.core.test_catalog_overlay import TOMORROW
from trainium_core.account import RunningInstance
from trainium_core.preflight import Finding, preflight, verdict
from trainium_core.preflight.quota_check import judge_quota
from trainium_core.quota import QuotaNeed

PLAN = from_settings(nodes=2)
VPC = {"vpc_id": "vpc-0123456789abcdef0", "subnet_id": "subnet-0123456789abcdef0"}


def found(check: str, account: FakeAccount, **settings: Any) -> Finding:
    """The finding of one check."""
    plan = from_settings(nodes=2, **settings)
    (finding,) = [finding for finding in preflight(plan, account) if finding.check == check]
    return finding


def test_an_account_with_everything_in_place_is_ready() -> None:
    findings = preflight(PLAN, FakeAccount())
    assert [(f.check, f.outcome) for f in findings] == [
        (check, "pass") for check in ("identity", "quota", "offering", "image", "bootstrap", "stack")
    ]
    assert verdict(findings) == "ready"


@pytest.mark.parametrize(
    ("question", "check"),
    [
        ("quota", "quota"),
        ("instances", "quota"),
        ("offering", "offering"),
        ("parameter", "image"),
        ("image", "image"),
        ("bootstrap", "bootstrap"),
        ("stack", "stack"),
    ],
)
def test_a_question_without_an_answer_is_unknown_and_the_verdict_too(question: str, check: str) -> None:
    findings = preflight(PLAN, FakeAccount(silent={question}))
    unknown = [finding for finding in findings if finding.outcome != "pass"]
    assert unknown == [Finding(check=check, outcome="unknown", found=f"no answer about {question}")]
    assert verdict(findings) == "could not tell"


def test_without_an_identity_the_rest_is_told_and_the_verdict_is_open() -> None:
    findings = preflight(PLAN, FakeAccount(silent={"identity"}))
    assert [finding.check for finding in findings if finding.outcome == "unknown"] == ["identity"]
    assert verdict(findings) == "could not tell"


def test_a_suppressed_check_is_shown_and_does_not_count() -> None:
    findings = preflight(PLAN, FakeAccount(limit=0), suppressed={"quota"})
    (quota,) = [finding for finding in findings if finding.check == "quota"]
    assert quota == Finding(check="quota", outcome="unknown", found="not asked: suppressed", suppressed=True)
    assert verdict(findings) == "ready"


def test_the_account_and_region_are_named() -> None:
    assert "account 123456789012, region us-west-2" in found("identity", FakeAccount()).found


def test_an_emulator_is_never_taken_for_aws() -> None:
    account = FakeAccount(endpoint="http://127.0.0.1:4599")
    assert found("identity", account).found.endswith("answered by http://127.0.0.1:4599 and not by AWS")


def on_demand(vcpus: int, cluster: str | None = None) -> RunningInstance:
    return RunningInstance(vcpus=vcpus, capacity="on-demand", cluster=cluster)


def test_a_quota_with_just_enough_room_passes() -> None:
    account = FakeAccount(limit=384, running=[on_demand(128)])
    finding = found("quota", account)
    assert finding.outcome == "pass"
    assert finding.needed == "256 vCPUs"
    assert finding.found == "256 of 384 vCPUs are free of L-2C3B7624, Running On-Demand Trn instances"


def test_a_quota_without_room_fails_and_says_how_much_to_ask_for() -> None:
    finding = found("quota", FakeAccount(limit=383, running=[on_demand(128)]))
    assert finding.outcome == "fail"
    assert "ask Service Quotas for 384 or more" in finding.fix


def test_nodes_of_the_same_cluster_are_not_counted_twice() -> None:
    mine = on_demand(256, cluster=PLAN.cluster_name)
    assert found("quota", FakeAccount(limit=256, running=[mine])).outcome == "pass"
    theirs = on_demand(256, cluster="another")
    assert found("quota", FakeAccount(limit=256, running=[theirs])).outcome == "fail"


def test_markets_have_quotas_of_their_own() -> None:
    spot = RunningInstance(vcpus=256, capacity="spot")
    assert found("quota", FakeAccount(running=[spot])).outcome == "pass"
    assert found("quota", FakeAccount(running=[spot]), capacity="spot").outcome == "fail"


def test_room_that_capacity_blocks_may_take_is_unknown() -> None:
    block = RunningInstance(vcpus=128, capacity="capacity-block")
    assert found("quota", FakeAccount(limit=256, running=[block])).outcome == "unknown"
    assert found("quota", FakeAccount(limit=384, running=[block])).outcome == "pass"
    assert found("quota", FakeAccount(limit=255, running=[block])).outcome == "fail"
    assert found("quota", FakeAccount(limit=256, running=[block]), capacity="spot").outcome == "pass"


def test_a_capacity_block_is_a_warning_since_no_source_says_what_it_counts_against() -> None:
    account = FakeAccount(limit=0)
    finding = found("quota", account, capacity="capacity-block", reservation_id=RESERVATION)
    assert finding.outcome == "warn"


def test_a_reservation_counted_when_it_was_made() -> None:
    assert found("quota", FakeAccount(limit=0), capacity="reservation", reservation_id=RESERVATION).outcome == "pass"


def test_a_type_whose_quota_no_source_names_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(TOMORROW.replace("trn9", "xyz9"))
    plan = from_settings(instance_type="xyz9.96xlarge", region="eu-north-1", catalog=str(tmp_path / "mine.toml"))
    findings = {finding.check: finding for finding in preflight(plan, FakeAccount())}
    assert findings["quota"].outcome == "unknown"


capacities = st.sampled_from(["on-demand", "spot", "capacity-block", "scheduled"])
running_instances = st.lists(
    st.builds(
        RunningInstance,
        vcpus=st.integers(1, 192),
        capacity=capacities,
        cluster=st.sampled_from([None, "mine", "another"]),
    ),
    max_size=6,
)


@given(
    need=st.integers(1, 2000),
    limit=st.integers(0, 2000),
    running=running_instances,
    capacity=st.sampled_from(["on-demand", "spot"]),
)
def test_a_quota_passes_only_when_what_runs_and_what_is_needed_fit(
    need: int, limit: int, running: list[RunningInstance], capacity: str
) -> None:
    answer = judge_quota(
        QuotaNeed(code="L-1", name="x", vcpus=need), limit=limit, running=running, capacity=capacity, cluster="mine"
    )
    others = [instance for instance in running if instance.cluster != "mine"]
    certain = need + sum(i.vcpus for i in others if i.capacity == capacity)
    possible = certain + sum(i.vcpus for i in others if i.capacity == "capacity-block" and capacity == "on-demand")
    assert answer.outcome == ("pass" if possible <= limit else "unknown" if certain <= limit else "fail")
    assert bool(answer.fix) == (answer.outcome != "pass")


def test_a_zone_that_lacks_the_type_fails_with_the_zones_that_have_it() -> None:
    finding = found("offering", FakeAccount(zones=["usw2-az4"]))
    assert finding.outcome == "fail"
    assert finding.found == "usw2-az1 does not offer trn1.32xlarge; in us-west-2 these zones do: usw2-az4"


def test_a_region_that_offers_nothing_says_none() -> None:
    assert found("offering", FakeAccount(zones=[])).found.endswith("these zones do: none")


def test_the_zone_of_an_own_subnet_is_what_counts() -> None:
    finding = found("offering", FakeAccount(zones=["usw2-az4"], zone_of_subnet="usw2-az4"), **VPC)
    assert finding.outcome == "pass"
    assert finding.found.startswith("usw2-az4 offers trn1.32xlarge, which is no promise")
    assert found("offering", FakeAccount(zones=["usw2-az1"], zone_of_subnet="usw2-az4"), **VPC).outcome == "fail"


def test_an_own_subnet_must_be_in_the_vpc() -> None:
    finding = found("offering", FakeAccount(zone_of_subnet=None), **VPC)
    assert (finding.outcome, finding.found) == ("fail", f"no {VPC['subnet_id']} in {VPC['vpc_id']} in us-west-2")


def test_an_own_subnet_must_be_in_the_zone_that_the_plan_names() -> None:
    finding = found("offering", FakeAccount(), **VPC, availability_zone_id="usw2-az1")
    assert finding.outcome == "fail"
    assert "set trn:availability_zone_id to usw2-az4" in finding.fix


@pytest.mark.parametrize(
    ("account", "says"),
    [
        (FakeAccount(parameter_value=None), "no SSM parameter /aws/service/neuron"),
        (FakeAccount(found_image=None), "no image ami-0123456789abcdef0 in us-west-2"),
        (FakeAccount(found_image=replace(IMAGE, state="pending")), "ami-0123456789abcdef0 is pending"),
        (FakeAccount(found_image=replace(IMAGE, root_device_name="/dev/xvda")), "is /dev/xvda, not /dev/sda1"),
        (FakeAccount(found_image=replace(IMAGE, root_volume_gib=600)), "takes 600 GiB, more than 512"),
    ],
)
def test_an_image_that_cannot_be_booted_from_fails_with_a_fix(account: FakeAccount, says: str) -> None:
    finding = found("image", account)
    assert finding.outcome == "fail"
    assert says in finding.found
    assert "set trn:" in finding.fix


def test_a_pinned_image_needs_no_parameter() -> None:
    assert found("image", FakeAccount(silent={"parameter"}), ami=IMAGE.image_id).outcome == "pass"


def test_a_region_that_is_not_bootstrapped_fails_with_the_command() -> None:
    finding = found("bootstrap", FakeAccount(stacks={}))
    assert (finding.outcome, finding.fix) == ("fail", "run: cdk bootstrap aws://123456789012/us-west-2")


def test_a_bootstrap_that_failed_is_none() -> None:
    assert found("bootstrap", FakeAccount(stacks={"CDKToolkit": "ROLLBACK_COMPLETE"})).outcome == "fail"


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (None, "pass"),
        ("REVIEW_IN_PROGRESS", "pass"),
        ("CREATE_COMPLETE", "pass"),
        ("UPDATE_COMPLETE", "pass"),
        ("UPDATE_ROLLBACK_COMPLETE", "pass"),
        ("ROLLBACK_COMPLETE", "warn"),
        ("ROLLBACK_FAILED", "fail"),
        ("CREATE_IN_PROGRESS", "fail"),
        ("DELETE_IN_PROGRESS", "fail"),
        ("DELETE_FAILED", "fail"),
        ("UPDATE_ROLLBACK_FAILED", "fail"),
        ("SOMETHING_NEW", "fail"),
    ],
)
def test_a_stack_is_only_updated_from_a_steady_state(status: str | None, outcome: str) -> None:
    stacks = {"CDKToolkit": "CREATE_COMPLETE"} | ({"TrnClusterStack": status} if status else {})
    assert found("stack", FakeAccount(stacks=stacks)).outcome == outcome


outcomes = st.sampled_from(["pass", "warn", "fail", "unknown"])


@given(kinds=st.lists(outcomes, max_size=6))
def test_ready_needs_every_finding_to_pass_or_warn(kinds: list[Any]) -> None:
    told = verdict([Finding(check="x", outcome=kind, found="") for kind in kinds])
    assert (told == "ready") == (bool(kinds) and set(kinds) <= {"pass", "warn"})
    assert (told == "not ready") == ("fail" in kinds)

"""Whether the bootstrap stack and the cluster's stack allow a deployment."""

from typing import Any

import pytest

from tests.core.fake_account import FakeAccount
from tests.core.findings import finding_of
from tests.core.plans import from_settings
from trainium_core.preflight.runner import preflight
from trainium_core.preflight.stack_checks import check_project
from trainium_core.stacks.deployed_stack import StackContents, StackNetwork


@pytest.mark.parametrize(("version", "outcome"), [("5", "fail"), ("6", "pass"), ("21", "pass"), ("new", "unknown")])
def test_bootstrap_must_be_new_enough(version: str, outcome: str) -> None:
    finding = finding_of("bootstrap", FakeAccount(bootstrap_version=version))
    assert (finding.outcome, finding.needed) == (outcome, "version 6 or newer")


def test_missing_bootstrap_fails_with_the_command() -> None:
    finding = finding_of("bootstrap", FakeAccount(bootstrap_version=None))
    assert finding.found.startswith("the parameter /cdk-bootstrap/hnb659fds/version does not exist; if the app has")
    assert finding.fix == "run: cdk bootstrap aws://123456789012/us-west-2"


@pytest.mark.parametrize(("version", "outcome"), [(None, "fail"), ("5", "fail"), ("21", "pass")])
def test_bootstrap_of_another_qualifier_is_checked_instead(version: str | None, outcome: str) -> None:
    """Its fix does not change the stack of the default qualifier, which other apps use."""
    account = FakeAccount(bootstrap_version=version, qualifier="mlteam")
    findings = preflight(from_settings(nodes=2), account, qualifier="mlteam")
    (finding,) = [finding for finding in findings if finding.check == "bootstrap"]
    assert finding.outcome == outcome
    if outcome == "fail":
        assert "cdk bootstrap --qualifier mlteam --toolkit-stack-name " in finding.fix


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (None, "pass"),
        ("REVIEW_IN_PROGRESS", "pass"),
        ("CREATE_COMPLETE", "pass"),
        ("IMPORT_ROLLBACK_COMPLETE", "pass"),
        ("ROLLBACK_COMPLETE", "warn"),
        ("DELETE_FAILED", "fail"),
        ("UPDATE_ROLLBACK_FAILED", "fail"),
        ("SOMETHING_NEW", "fail"),
    ],
)
def test_state_of_the_stack_decides_whether_it_can_be_deployed(status: str | None, outcome: str) -> None:
    account = FakeAccount(stack_status={"TrnClusterStack": status} if status else {})
    assert finding_of("stack", account).outcome == outcome


@pytest.mark.parametrize(
    ("status", "fix"),
    [
        ("DELETE_FAILED", "cdk destroy TrnClusterStack"),
        ("ROLLBACK_FAILED", "cdk destroy TrnClusterStack"),
        ("UPDATE_ROLLBACK_FAILED", "cdk rollback TrnClusterStack"),
        ("UPDATE_IN_PROGRESS", "wait until the operation has ended"),
    ],
)
def test_state_that_prevents_a_deployment_has_a_fix(status: str, fix: str) -> None:
    assert fix in finding_of("stack", FakeAccount(stack_status={"TrnClusterStack": status})).fix


@pytest.mark.parametrize("status", ["CREATE_COMPLETE", "DELETE_FAILED"])
def test_stack_of_another_cluster_is_not_overwritten(status: str) -> None:
    account = FakeAccount(
        stack_status={"TrnClusterStack": status}, contents={"TrnClusterStack": StackContents(cluster="others")}
    )
    finding = finding_of("stack", account)
    assert finding.outcome == "fail"
    assert finding.found.startswith("TrnClusterStack belongs to cluster others, not to trn-pilot")
    assert finding.fix.startswith("set trn:cluster_name to others")


def test_unreadable_owner_of_the_stack_is_unknown() -> None:
    account = FakeAccount(stack_status={"TrnClusterStack": "CREATE_COMPLETE"}, unavailable={"template"})
    assert finding_of("stack", account).outcome == "unknown"


def deployed(**network: Any) -> FakeAccount:
    """An account with the cluster of a plan for usw2-az4."""
    there = StackNetwork(**{"zone_id": "usw2-az4", "cidr": "10.42.0.0/16", **network})
    contents = StackContents(cluster="trn-pilot", network=there)
    return FakeAccount(stack_status={"TrnClusterStack": "CREATE_COMPLETE"}, contents={"TrnClusterStack": contents})


def test_subnet_cannot_move_to_another_zone() -> None:
    finding = finding_of("stack", deployed(), availability_zone_id="usw2-az1")
    assert finding.outcome == "fail"
    assert "InvalidSubnet.Conflict" in finding.found
    assert finding.fix == (
        "set trn:availability_zone_id to usw2-az4, or destroy the cluster first: "
        "trn destroy, or cdk destroy TrnClusterStack"
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"availability_zone_id": "usw2-az4", "vpc_cidr": "10.43.0.0/16"},
        {"vpc_id": "vpc-0123456789abcdef0", "subnet_id": "subnet-0123456789abcdef0"},
    ],
)
def test_change_of_vpc_is_refused_only_if_it_would_replace_a_file_system(settings: dict[str, str]) -> None:
    finding = finding_of("stack", deployed(has_lustre=True), **settings)
    assert finding.outcome == "fail"
    assert "would replace the FSx for Lustre file system with an empty one" in finding.found
    assert finding_of("stack", deployed(), **settings).outcome == "pass"


def test_stack_without_cluster_tag_is_judged_by_its_state() -> None:
    account = FakeAccount(
        stack_status={"TrnClusterStack": "CREATE_COMPLETE"}, contents={"TrnClusterStack": StackContents(cluster=None)}
    )
    assert finding_of("stack", account).outcome == "pass"


@pytest.mark.parametrize(("project_id", "outcome"), [("mine", "fail"), (None, "pass")])
def test_second_cluster_of_a_project_is_refused_as_a_change_of_the_name(project_id: str | None, outcome: str) -> None:
    account = FakeAccount(project_clusters={"pilot-TrnClusterStack": "pilot"})
    settings = {"project_id": project_id} if project_id else {}
    finding = check_project(from_settings(cluster_name="pilot2", **settings), account)
    assert finding.outcome == outcome
    if outcome == "fail":
        assert "this project deployed pilot (pilot-TrnClusterStack), which would keep running" in finding.found
        assert "trn destroy --cluster pilot;" in finding.fix
        assert "trn deploy --cluster pilot2" in finding.fix


def test_deployed_cluster_of_a_project_with_several_is_updated() -> None:
    account = FakeAccount(
        stack_status={"pilot2-TrnClusterStack": "CREATE_COMPLETE"},
        project_clusters={"pilot-TrnClusterStack": "pilot"},
        stack_tags={"trn:project": "mine"},
    )
    assert check_project(from_settings(cluster_name="pilot2", project_id="mine"), account).outcome == "pass"

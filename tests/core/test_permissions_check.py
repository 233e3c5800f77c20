"""Whether a role has its permissions, as far as IAM's policy simulator can determine."""

from typing import Any

import pytest

from tests.core.aws_stubs import stubbed
from tests.core.fake_account import FakeAccount
from tests.core.plans import from_settings
from trainium_core.aws.simulation import Calls, Denial
from trainium_core.permissions.roles import allowed_actions
from trainium_core.preflight.permissions_check import check_permissions
from trainium_runtime.check_result import CheckResult

ROLE = "arn:aws:iam::123456789012:role/cdk-exec"
DELETE = Denial(action="ec2:DeleteVpc")
STACK = "arn:aws:cloudformation:us-west-2:123456789012:stack/TrnClusterStack/simulated"


def check(account: FakeAccount, role: str = "cloudformation") -> CheckResult:
    return check_permissions(from_settings(), account, principal=ROLE, role=role)


def denying(*denials: Denial) -> FakeAccount:
    return FakeAccount(denied={denial.action: denial for denial in denials})


def test_every_action_except_patterns_is_simulated() -> None:
    account = FakeAccount()
    assert check(account).outcome == "pass"
    simulated = {action for calls in account.simulated for action in calls.actions}
    assert simulated == {action for action in allowed_actions("cloudformation") if "*" not in action}


def test_simulated_calls_use_resources_of_the_plan() -> None:
    account = FakeAccount()
    check(account, "operate")
    (deletion,) = [calls for calls in account.simulated if "cloudformation:DeleteStack" in calls.actions]
    assert STACK in deletion.resources
    assert not [arn for calls in account.simulated for arn in calls.resources if arn != "*" and "*" in arn]
    assert {calls.context["aws:RequestedRegion"] for calls in account.simulated} == {"us-west-2"}


def test_condition_with_two_keys_has_a_value_for_both() -> None:
    account = FakeAccount()
    check(account, "operate")
    (context,) = [
        calls.context
        for calls in account.simulated
        if "ssm:SendCommand" in calls.actions and "ssm:resourceTag/Name" in calls.context
    ]
    assert context["ssm:resourceTag/trn:cluster"] == "trn-pilot"


@pytest.mark.parametrize(
    ("denial", "outcome", "says"),
    [
        (DELETE, "fail", "IAM's simulation denies cdk-exec ec2:DeleteVpc"),
        (Denial(action="ec2:DeleteVpc", by_organization=True), "fail", "some of them by a service control policy"),
        (
            Denial(action="ec2:DeleteVpc", missing_keys=["aws:SourceIp"]),
            "unknown",
            "without values for aws:SourceIp, denies",
        ),
    ],
    ids=["denied", "by the organization", "missing key"],
)
def test_denial_fails_unless_a_context_key_has_no_value(denial: Denial, outcome: str, says: str) -> None:
    result = check(denying(denial))
    assert result.outcome == outcome
    assert says in result.found


def simulate(page: dict[str, Any]) -> list[Denial]:
    account, stub = stubbed("iam")
    stub.add_response("simulate_principal_policy", page)
    found = account.simulation.denials(
        ROLE, Calls(actions=["s3:GetObject"], resources=["arn:aws:s3:::b/x"], context={"aws:key": "v"})
    )
    stub.assert_no_pending_responses()
    return list(found)


def result(action: str, decision: str, **more: Any) -> dict[str, Any]:
    return {"EvalActionName": action, "EvalDecision": decision, **more}


def of_resource(decision: str, **more: Any) -> dict[str, Any]:
    return {"EvalResourceName": "arn", "EvalResourceDecision": decision, **more}


def test_action_denied_on_one_resource_is_denied() -> None:
    resources = [of_resource("allowed"), of_resource("implicitDeny", MissingContextValues=["aws:SourceIp"])]
    page = {"EvaluationResults": [result("s3:GetObject", "allowed", ResourceSpecificResults=resources)]}
    assert simulate(page) == [Denial(action="s3:GetObject", missing_keys=("aws:SourceIp",))]


def test_denying_policy_type_is_read() -> None:
    stopped = {
        "OrganizationsDecisionDetail": {"AllowedByOrganizations": False},
        "PermissionsBoundaryDecisionDetail": {"AllowedByPermissionsBoundary": False},
    }
    page = {"EvaluationResults": [result("s3:GetObject", "explicitDeny", **stopped)]}
    assert simulate(page) == [Denial(action="s3:GetObject", by_organization=True, by_boundary=True)]

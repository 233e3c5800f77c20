"""Why a deployment failed: the original errors, the state of the stack, and the next step."""

import pytest

from trainium_core.stacks.deployment_failure import DeploymentFailure, deployment_failure
from trainium_core.stacks.events import StackEvent

READINESS = (
    "Received response status [FAILED] from custom resource. Message returned: node i-0: neuron-ls shows 15 of 16 "
    "Neuron devices (missing: device 7). See the details in CloudWatch Log Stream: x (RequestId: 1)"
)


def event(status: str, reason: str = "", *, of_stack: bool = False, logical_id: str = "FleetReadiness") -> StackEvent:
    kind = "AWS::CloudFormation::Stack" if of_stack else "Custom::TrnFleetReadiness"
    return StackEvent(
        kind=kind,
        logical_id=logical_id,
        status=status,
        reason=reason,
        of_stack=of_stack,
    )


def failed_with(reason: str, *, status: str = "ROLLBACK_COMPLETE") -> DeploymentFailure:
    failure = deployment_failure([event("CREATE_FAILED", reason), event(status, of_stack=True)])
    assert failure is not None
    return failure


def test_message_of_a_custom_resource_is_unwrapped() -> None:
    (reason,) = failed_with(READINESS).reasons
    assert reason == (
        "FleetReadiness (Custom::TrnFleetReadiness): node i-0: neuron-ls shows 15 of 16 Neuron devices "
        "(missing: device 7)."
    )


def test_cancelled_resource_is_not_a_reason() -> None:
    events = [
        event("CREATE_FAILED", "it broke"),
        event("CREATE_FAILED", "Resource creation cancelled", logical_id="Other"),
        event("ROLLBACK_COMPLETE", of_stack=True),
    ]
    failure = deployment_failure(events)
    assert failure is not None
    assert failure.reasons == ("FleetReadiness (Custom::TrnFleetReadiness): it broke",)


def test_known_cause_is_shown_before_the_state() -> None:
    known, unknown = failed_with("L-2C3B7624 allows 128 vCPUs, 256 vCPUs are needed"), failed_with("something else")
    assert "\nCause: the quota Running On-Demand Trn instances" in known.text
    assert "Cause:" not in unknown.text


@pytest.mark.parametrize(
    ("reason", "command"),
    [
        ("L-2C3B7624 allows 128 vCPUs, 256 vCPUs are needed", "trn quota request"),
        (READINESS, "trn deploy` again: it launches other instances"),
        ("something else", "trn preflight"),
    ],
)
def test_advice_matches_the_reason(reason: str, command: str) -> None:
    assert f"`{command}" in failed_with(reason).advice


@pytest.mark.parametrize(
    ("because", "advice"),
    [
        ("with an explicit deny in a service control policy", "AWS organization"),
        ("with an explicit deny in a service control policy", "@aws-cdk/core:permissionsBoundary"),
        (
            "because no permissions boundary allows the ec2:CreateVpc action",
            "allow the action in that permissions boundary",
        ),
        ("because no identity-based policy allows the ec2:CreateVpc action", "grant that permission to the principal"),
    ],
)
def test_denial_advice_names_the_denying_policy_type(because: str, advice: str) -> None:
    denial = (
        f"User: arn:aws:sts::1:assumed-role/x/y is not authorized to perform: ec2:CreateVpc on resource: * {because}"
    )
    assert advice in failed_with(denial).advice


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ("ROLLBACK_COMPLETE", "nothing runs"),
        ("UPDATE_ROLLBACK_COMPLETE", "as it was before"),
        ("ROLLBACK_FAILED", "could not be deleted"),
        ("", "unknown: the events of the stack do not show it"),
    ],
)
def test_resulting_stack_state_is_reported(status: str, message: str) -> None:
    assert message in failed_with("x", status=status).state


@pytest.mark.parametrize(
    ("status", "command"),
    [
        ("ROLLBACK_FAILED", "trn destroy"),
        ("CREATE_FAILED", "cdk rollback"),
        ("UPDATE_ROLLBACK_FAILED", "cdk rollback"),
    ],
)
def test_stack_that_cannot_be_deployed_is_mended_first(status: str, command: str) -> None:
    failure = failed_with("x", status=status)
    assert failure.advice.startswith(f"first run `{command}`")
    assert failure.advice.endswith("; then run `trn preflight`, fix its findings, and run `trn deploy` again")
    assert command not in failure.state

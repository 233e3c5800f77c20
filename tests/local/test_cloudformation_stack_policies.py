"""Stack policies: what an update may change of a stack."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local.conftest import EmbeddedAws
from tests.local.stacks import Stacks, parameter, template

ALLOW_ALL: dict[str, Any] = {"Effect": "Allow", "Action": "Update:*", "Principal": "*", "Resource": "*"}


def policy(*statements: dict[str, Any]) -> str:
    return json.dumps({"Statement": [*statements]})


def deny(*actions: str, **more: Any) -> dict[str, Any]:
    return {"Effect": "Deny", "Action": list(actions), "Principal": "*", "Resource": "LogicalResourceId/Kept", **more}


@pytest.fixture(scope="module")
def stacks(embedded_aws: EmbeddedAws) -> Stacks:
    return Stacks(embedded_aws)


def parameters(value: str = "x", *, kept: bool = True, **kept_properties: Any) -> dict[str, Any]:
    found = {"Other": parameter(value)}
    if kept:
        found["Kept"] = parameter(value)
        found["Kept"]["Properties"] |= kept_properties
    return template(found)


def test_an_update_of_a_protected_resource_fails_and_is_rolled_back(stacks: Stacks) -> None:
    name = stacks.deploy(parameters(), StackPolicyBody=policy(deny("Update:Modify", "Update:Replace"), ALLOW_ALL))
    assert stacks.update(name, parameters("y")) == "UPDATE_ROLLBACK_COMPLETE"
    denied = "Statement [#1] does not allow [Update:Modify, Update:Replace] for resource [LogicalResourceId/Kept];"
    assert f"Kept: Action denied by stack policy: {denied}" in stacks.failures(name)
    assert stacks.value_of(name, "Kept") == stacks.value_of(name, "Other") == "x"


def test_what_no_statement_allows_is_denied(stacks: Stacks) -> None:
    name = stacks.deploy(parameters(), StackPolicyBody=policy({**ALLOW_ALL, "Resource": "LogicalResourceId/Other"}))
    assert stacks.update(name, parameters("y")) == "UPDATE_ROLLBACK_COMPLETE"
    assert "Kept: Action not allowed by stack policy" in stacks.failures(name)


@pytest.mark.parametrize(
    ("action", "wanted"),
    [
        ("Update:Replace", parameters(Name="/stack-policy/renamed")),
        ("Update:Delete", parameters(kept=False)),
    ],
)
def test_replacement_and_deletion_are_actions_of_their_own(stacks: Stacks, action: str, wanted: Any) -> None:
    name = stacks.deploy(parameters(), StackPolicyBody=policy(deny(action), ALLOW_ALL))
    before = stacks.physical_id(name, "Kept")
    assert stacks.update(name, wanted) == "UPDATE_ROLLBACK_COMPLETE"
    assert f"does not allow [{action}]" in stacks.failures(name)
    assert stacks.physical_id(name, "Kept") == before
    assert stacks.update(name, parameters("y")) == "UPDATE_COMPLETE"


def test_a_condition_on_the_type_limits_a_statement(stacks: Stacks) -> None:
    others = deny("Update:*", Condition={"StringEquals": {"ResourceType": ["AWS::SNS::Topic"]}})
    name = stacks.deploy(parameters(), StackPolicyBody=policy(others, ALLOW_ALL))
    assert stacks.update(name, parameters("y")) == "UPDATE_COMPLETE"


def test_a_policy_for_one_update_overrides_the_policy_once(stacks: Stacks) -> None:
    protecting = policy(deny("Update:*"), ALLOW_ALL)
    name = stacks.deploy(parameters())
    stacks.api.set_stack_policy(StackName=name, StackPolicyBody=protecting)
    during = {"StackPolicyDuringUpdateBody": policy(ALLOW_ALL)}
    assert stacks.update(name, parameters("y"), **during) == "UPDATE_COMPLETE"
    assert stacks.api.get_stack_policy(StackName=name)["StackPolicyBody"] == protecting
    assert stacks.update(name, parameters("z")) == "UPDATE_ROLLBACK_COMPLETE"


def test_the_policy_that_comes_with_an_update_holds_for_the_next(stacks: Stacks) -> None:
    name = stacks.deploy(parameters())
    assert stacks.update(name, parameters("y"), StackPolicyBody=policy(deny("Update:*"))) == "UPDATE_COMPLETE"
    assert stacks.update(name, parameters("z")) == "UPDATE_ROLLBACK_COMPLETE"


@pytest.mark.parametrize("text", ["no policy", "[]", '{"Statement": [{"Action": "Update:*"}]}'])
def test_a_text_that_is_no_policy_is_refused(stacks: Stacks, text: str) -> None:
    with pytest.raises(ClientError, match="Error validating stack policy: Invalid stack policy"):
        stacks.create(parameters(), StackPolicyBody=text)

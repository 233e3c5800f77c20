"""Policies in the forms that IAM takes and refuses."""

import json
from typing import Any

import pytest

from tests.local.conftest import EmbeddedAws
from tests.local.stacks import Stacks, template


@pytest.fixture
def stacks(embedded_aws: EmbeddedAws) -> Stacks:
    return Stacks(embedded_aws)


def one(resource_type: str, **properties: Any) -> dict[str, Any]:
    return template({"X": {"Type": resource_type, "Properties": properties}})


STATEMENT = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
POLICIES: dict[str, Any] = {
    "no Version": {"Statement": [STATEMENT]},
    "Version of 2008": {"Version": "2008-10-17", "Statement": [STATEMENT]},
    "one statement": {"Version": "2012-10-17", "Statement": STATEMENT},
    "text": json.dumps({"Version": "2012-10-17", "Statement": [STATEMENT]}),
    "a number": {"Statement": [{**STATEMENT, "Condition": {"NumericLessThan": {"s3:max-keys": 10}}}]},
}


@pytest.mark.parametrize("document", POLICIES.values(), ids=POLICIES)
def test_an_inline_policy_may_be_written_so(stacks: Stacks, document: Any) -> None:
    policy = {"PolicyName": "p", "PolicyDocument": document}
    trust = {
        "Statement": {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
    }
    name = stacks.deploy(one("AWS::IAM::Role", AssumeRolePolicyDocument=trust, Policies=[policy]))
    role = stacks.physical_id(name, "X")
    found = stacks.aws.client("iam").get_role_policy(RoleName=role, PolicyName="p")["PolicyDocument"]
    assert found == (json.loads(document) if isinstance(document, str) else document)


def test_a_managed_policy_without_version_is_refused(stacks: Stacks) -> None:
    name = stacks.create(one("AWS::IAM::ManagedPolicy", PolicyDocument=POLICIES["no Version"]))
    assert "Policy document must be version 2012-10-17 or greater." in stacks.failures(name)

"""{{resolve:...}} in a template: values of SSM parameters and of secrets, as CloudFormation puts them in."""

import json
import re
import uuid
from typing import Any

import pytest

from tests.local.conftest import EmbeddedAws
from tests.local.stacks import Stacks, parameter, template


@pytest.fixture(scope="module")
def stacks(embedded_aws: EmbeddedAws) -> Stacks:
    return Stacks(embedded_aws)


@pytest.fixture(scope="module")
def secret(embedded_aws: EmbeddedAws) -> dict[str, Any]:
    """A secret with a value before the current one; its name and ARN."""
    api, name = embedded_aws.client("secretsmanager"), f"user/{uuid.uuid4().hex[:8]}"
    made = api.create_secret(Name=name, SecretString=json.dumps({"password": "old", "port": 1}))
    api.put_secret_value(SecretId=name, SecretString=json.dumps({"password": "new", "port": 2}))
    return {"name": name, "arn": made["ARN"]}


@pytest.fixture(scope="module")
def stored(embedded_aws: EmbeddedAws) -> str:
    """The name of an SSM parameter of two versions."""
    name = f"/t/{uuid.uuid4().hex[:8]}"
    for value in ("first", "second"):
        embedded_aws.client("ssm").put_parameter(Name=name, Type="String", Value=value, Overwrite=True)
    return name


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ("{name}:SecretString:password", "new"),
        ("{name}:SecretString:password:AWSPREVIOUS", "old"),
        ("{name}:SecretString:password::", "new"),
        ("{arn}:SecretString:port", "2"),
        ("{arn}", '{"password": "new", "port": 2}'),
        ("{name}:SecretString", '{"password": "new", "port": 2}'),
    ],
)
def test_a_secret_is_found_by_each_form(stacks: Stacks, secret: dict[str, Any], reference: str, value: str) -> None:
    text = "{{resolve:secretsmanager:" + reference.format(**secret) + "}}"
    name = stacks.deploy(template({"X": parameter(f"<{text}>")}))
    assert stacks.value_of(name, "X") == f"<{value}>"


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("nobody:SecretString:password", "Secrets Manager can't find the specified secret"),
        ("{name}:SecretString:user", "Could not find a value associated with JSONKey in SecretString"),
    ],
)
def test_a_secret_that_is_not_there_fails_the_resource(
    stacks: Stacks, secret: dict[str, Any], reference: str, reason: str
) -> None:
    text = "{{resolve:secretsmanager:" + reference.format(**secret) + "}}"
    name = stacks.create(template({"X": parameter(text)}))
    assert stacks.settled(name) == "ROLLBACK_COMPLETE"
    assert reason in stacks.failures(name)


def test_a_secret_is_read_again_only_when_its_resource_is_updated(stacks: Stacks) -> None:
    secret = f"turned-{uuid.uuid4().hex[:8]}"
    api = stacks.aws.client("secretsmanager")
    api.create_secret(Name=secret, SecretString="one")
    text = "{{resolve:secretsmanager:" + secret + "}}"
    name = stacks.deploy(template({"X": parameter(text)}))
    api.put_secret_value(SecretId=secret, SecretString="two")
    stacks.update(name, template({"X": parameter(text), "Y": parameter()}))
    assert stacks.value_of(name, "X") == "one"
    changed = parameter(text)
    changed["Properties"]["Description"] = "changed"
    stacks.update(name, template({"X": changed, "Y": parameter()}))
    assert stacks.value_of(name, "X") == "two"


def test_a_secret_that_is_gone_does_not_hold_up_the_deletion(stacks: Stacks) -> None:
    secret = f"gone-{uuid.uuid4().hex[:8]}"
    api = stacks.aws.client("secretsmanager")
    api.create_secret(Name=secret, SecretString="x")
    name = stacks.deploy(template({"X": parameter("{{resolve:secretsmanager:" + secret + "}}")}))
    api.delete_secret(SecretId=secret, ForceDeleteWithoutRecovery=True)
    assert stacks.delete(name) == "DELETE_COMPLETE"


def test_an_output_keeps_the_reference_to_a_secret_as_text(stacks: Stacks, secret: dict[str, Any]) -> None:
    text = "{{resolve:secretsmanager:" + secret["name"] + "}}"
    name = stacks.deploy(template({"X": parameter()}, Outputs={"O": {"Value": text}}))
    assert stacks.outputs(name) == {"O": text}


@pytest.mark.parametrize(
    ("value", "resolved"),
    [
        ("{{resolve:ssm:NAME}}", "second"),
        ("a {{resolve:ssm:NAME:1}} b {{resolve:ssm:NAME:2}}", "a first b second"),
        ({"Fn::Sub": ["{{resolve:ssm:${N}:1}}", {"N": "NAME"}]}, "first"),
        ({"Fn::Join": ["", ["{{resolve:ssm:", "NAME", "}}"]]}, "second"),
        ("{{resolve:ssm:/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-6.1-x86_64:75}}", "ami-"),
    ],
)
def test_a_parameter_is_found_in_each_place(stacks: Stacks, stored: str, value: Any, resolved: str) -> None:
    wanted = json.loads(json.dumps(value).replace("NAME", stored))
    name = stacks.deploy(template({"X": parameter(wanted)}))
    assert stacks.value_of(name, "X").startswith(resolved)


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("ssm:/nobody", r"Parameters: \[ssm:/nobody\] cannot be found\."),
        (
            "ssm:/nobody:label",
            r"Incorrect format is used in the following SSM reference: \[{{resolve:ssm:/nobody:label}",
        ),
    ],
)
def test_a_parameter_that_is_not_there_is_refused(stacks: Stacks, reference: str, reason: str) -> None:
    name = stacks.create(template({"X": parameter("{{resolve:" + reference + "}}")}))
    assert stacks.settled(name) == "ROLLBACK_COMPLETE"
    assert re.search(reason, stacks.failures(name))


def test_a_secure_parameter_requests_its_own_reference(stacks: Stacks) -> None:
    secure = f"/t/{uuid.uuid4().hex[:8]}"
    stacks.aws.client("ssm").put_parameter(Name=secure, Type="SecureString", Value="s3cret")
    name = stacks.create(template({"X": parameter("{{resolve:ssm:" + secure + "}}")}))
    assert stacks.settled(name) == "ROLLBACK_COMPLETE"
    assert f"Non-secure ssm prefix was used for secure parameter {secure}" in stacks.failures(name)

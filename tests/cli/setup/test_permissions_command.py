"""`trn permissions`: the policies of a role, and its commands."""

import json
from typing import Any

import pytest

from tests.cli.running import GOOD, run
from trainium_cli.exit_codes import ExitCode
from trainium_core.naming import training_job_prefix
from trainium_core.permissions.roles import allowed_actions


def shown(*arguments: str) -> dict[str, Any]:
    ended = run("permissions", *GOOD, "--json", *arguments)
    assert ended.exit_code == 0, ended.output
    return json.loads(ended.stdout)


def test_one_role_is_shown_for_an_account() -> None:
    (document,) = shown("read-only", "--account", "123456789012")["read-only"]
    assert {one for statement in document["Statement"] for one in statement["Action"]} == set(
        allowed_actions("read-only")
    )
    resources = [one for statement in document["Statement"] for one in statement["Resource"]]
    prefix = training_job_prefix("trn-pilot")
    assert f"arn:aws:sagemaker:us-west-2:123456789012:training-job/{prefix}*" in resources


def test_commands_of_role_are_shown() -> None:
    ended = run("permissions", "operate", *GOOD)
    assert ended.exit_code == 0, ended.output
    text, _, _ = ended.stdout.partition("{")
    assert "Commands: run, stop, cp; bench; " in text
    assert "; sleep, wake; destroy" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 120
    assert '"Version": "2012-10-17"' in ended.stdout


def test_qualifier_of_the_cdk_limits_the_roles_that_deploy_assumes() -> None:
    documents = shown("deploy", "-c", "@aws-cdk/core:bootstrapQualifier=mlteam")["deploy"]
    statements = [each for document in documents for each in document["Statement"]]
    (assuming,) = [each["Resource"] for each in statements if "sts:AssumeRole" in each["Action"]]
    assert "arn:aws:iam::*:role/cdk-mlteam-deploy-role-*-us-west-2" in assuming
    assert all(one.startswith("arn:aws:iam::*:role/cdk-mlteam-") for one in assuming)


@pytest.mark.parametrize("qualifier", ["*", "ml?", "a b", "elevenchars", "x;id"])
def test_qualifier_that_selects_other_roles_is_refused(qualifier: str) -> None:
    ended = run("permissions", "deploy", *GOOD, "-c", f"@aws-cdk/core:bootstrapQualifier={qualifier}")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "1 to 10 letters, digits, - and _" in ended.stderr

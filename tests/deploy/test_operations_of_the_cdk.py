"""What the CDK CLI does to a stack whose deployment failed without a rollback."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.account import Account
from trainium_local.environment import ACCOUNT_ID

STACK = "Operations"


class App:
    """An assembly of one stack, written by hand: synthesis is not what is looked at."""

    def __init__(self, account: Account, folder: Path) -> None:
        self.account, self.folder = account, folder

    def run(self, command: str, *options: str, resources: dict[str, Any]) -> tuple[int, str]:
        (self.folder / f"{STACK}.template.json").write_text(json.dumps({"Resources": resources}))
        stack = {
            "type": "aws:cloudformation:stack",
            "environment": f"aws://{ACCOUNT_ID}/{self.account.aws.region}",
            "properties": {"templateFile": f"{STACK}.template.json", "stackName": STACK},
        }
        (self.folder / "manifest.json").write_text(json.dumps({"version": "36.0.0", "artifacts": {STACK: stack}}))
        run = self.account.cdk(command, STACK, *options, app=self.folder)
        return run.code, run.printed

    @property
    def status(self) -> str:
        stacks = self.account.aws.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"]
        return stacks[0]["StackStatus"]


@pytest.fixture
def app(account: Account, tmp_path: Path) -> Iterator[App]:
    yield App(account, tmp_path)
    account.aws.client("cloudformation").delete_stack(StackName=STACK)


def parameter(value: str) -> dict[str, Any]:
    properties = {"Type": "String", "Name": "/operations/of/the/cdk", "Value": value}
    return {"Type": "AWS::SSM::Parameter", "Properties": properties}


REFUSED = {**parameter("there is one of the name already"), "DependsOn": "A"}


def test_a_failed_deployment_without_rollback_is_rolled_back_or_fixed(app: App) -> None:
    deploy = ("deploy", "--require-approval", "never")
    assert app.run(*deploy, resources={"A": parameter("good")})[0] == 0
    for value in ("bad", "worse"):
        code, printed = app.run(*deploy, "--no-rollback", resources={"A": parameter(value), "Z": REFUSED})
        assert (code, app.status) == (1, "UPDATE_FAILED"), printed
    code, printed = app.run("rollback", resources={"A": parameter("bad")})
    assert (code, app.status) == (0, "UPDATE_ROLLBACK_COMPLETE"), printed
    read = app.account.aws.client("ssm").get_parameter(Name="/operations/of/the/cdk")
    assert read["Parameter"]["Value"] == "good"

"""What the CDK CLI does to stacks beyond deploy and destroy: no rollback, rollback, drift, import."""

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


def test_drift_is_shown(app: App) -> None:
    resources = {"A": parameter("as deployed")}
    assert app.run("deploy", "--require-approval", "never", resources=resources)[0] == 0
    assert "No drift detected" in app.run("drift", resources=resources)[1]
    ssm = app.account.aws.client("ssm")
    ssm.put_parameter(Name="/operations/of/the/cdk", Value="changed by hand", Overwrite=True)
    code, printed = app.run("drift", "--fail", resources=resources)
    assert (code, "changed by hand" in printed) == (1, True), printed


def test_what_exists_is_imported(app: App) -> None:
    region = app.account.aws.region
    app.account.aws.client("s3").create_bucket(
        Bucket="imported-by-the-cdk", CreateBucketConfiguration={"LocationConstraint": region}
    )
    app.account.aws.client("logs").create_log_group(logGroupName="/imported/by/the/cdk")
    named = {"B": ("S3", "Bucket", "imported-by-the-cdk"), "L": ("Logs", "LogGroup", "/imported/by/the/cdk")}
    resources = {
        logical_id: {
            "Type": f"AWS::{service}::{kind}",
            "DeletionPolicy": "Retain",
            "Properties": {f"{kind}Name": name},
        }
        for logical_id, (service, kind, name) in named.items()
    }
    mapping = app.folder / "mapping.json"
    mapping.write_text(json.dumps({one: {f"{kind}Name": name} for one, (_, kind, name) in named.items()}))
    code, printed = app.run("import", "--resource-mapping", str(mapping), resources=resources)
    assert (code, app.status) == (0, "IMPORT_COMPLETE"), printed
    assert app.run("diff", "--fail", resources=resources)[0] == 0

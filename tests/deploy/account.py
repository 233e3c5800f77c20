"""An account on an embedded AWS, and the real CDK CLI in it."""

import json
import os
import re
import subprocess
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.constructs.synth import ROOT, Template
from tests.deploy import assembly
from tests.local.conftest import EmbeddedAws
from tests.shared import made_once
from tools.demo.deployed_cluster import DeployedCluster
from tools.demo.inventory import OBJECTS, Inventory, added, take_inventory
from trainium_core.naming import BOOTSTRAP_STACK_NAME, STACK_NAME
from trainium_local.environment import safe_environment, tool_folders
from trainium_wire.keys import USAGE_PREFIX


@dataclass(frozen=True, kw_only=True)
class Run:
    """The exit code of a command, and its output on both streams."""

    code: int
    printed: str

    @property
    def problems(self) -> str:
        """The output without events of operations that are in progress or succeeded."""
        return "\n".join(line for line in self.printed.splitlines() if not re.search("_(COMPLETE|IN_PROG)", line))


BOOTSTRAP_PARAMETERS = {
    "CloudFormationExecutionPolicies": "arn:aws:iam::aws:policy/AdministratorAccess",
    "FileAssetsBucketKmsKeyId": "AWS_MANAGED_KEY",
}
"""Parameters of the bootstrap stack, with the permissions that `cdk bootstrap` gives by default."""


def bootstrap_template() -> str:
    """The template of the pinned CDK CLI as JSON, which the embedded AWS parses in a tenth of the time of YAML."""

    def make(folder: Path) -> None:
        path = os.pathsep.join((*map(str, tool_folders(ROOT)), os.environ["PATH"]))
        environment = os.environ | {"PATH": path}
        shown = ["cdk", "bootstrap", "--show-template", "--no-notices"]
        run = subprocess.run(shown, env=environment, capture_output=True, text=True, check=True, timeout=480)
        (folder / "template.json").write_text(json.dumps(yaml.safe_load(run.stdout)))

    return (made_once("bootstrap template", make) / "template.json").read_text()


@dataclass(frozen=True, kw_only=True)
class Account:
    """An account on an embedded AWS. `folder` is the default working directory of commands."""

    aws: EmbeddedAws
    folder: Path

    def cdk(
        self, *arguments: str, app: Path | str | None = None, folder: Path | None = None, tools: Sequence[Path] = ()
    ) -> Run:
        """Run the pinned CDK CLI.

        Args:
            arguments: The arguments of `cdk`.
            app: A synthesised app. Default: the app of cdk.json in the working directory.
            folder: The working directory. Default: the folder of the account.
            tools: Folders that are first on PATH. Default: none.
        """
        command = ["cdk", *arguments, *(("--app", str(app)) if app else ()), "--no-color", "--no-notices"]
        safe = safe_environment(os.environ, self.aws.connection, tools=[*tools, *tool_folders(ROOT)])
        environment = safe | {"CDK_HOME": str(self.folder)}
        run = subprocess.run(
            command,
            cwd=folder or self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=480,
        )
        return Run(code=run.returncode, printed=run.stdout)

    def bootstrap(self, *, execution_policies: Sequence[str] = ()) -> None:
        """Create the stack that `cdk bootstrap` creates. `make demo` runs the command itself.

        Args:
            execution_policies: ARNs of the policies of CloudFormation's role. Default: AdministratorAccess, as with the
                CDK CLI.
        """
        parameters = dict(BOOTSTRAP_PARAMETERS)
        if execution_policies:
            parameters["CloudFormationExecutionPolicies"] = ",".join(execution_policies)
        status = assembly.create(
            self.aws,
            BOOTSTRAP_STACK_NAME,
            TemplateBody=bootstrap_template(),
            Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()],
        )
        assert status == "CREATE_COMPLETE", status

    def try_cdk_deploy(self, template: Template, stack: str = STACK_NAME) -> Run:
        """Deploy with the CDK CLI. The deployment may fail."""
        return self.cdk("deploy", stack, "--require-approval", "never", app=template.file.parent)

    def cdk_deploy(self, template: Template, stack: str = STACK_NAME) -> Run:
        run = self.try_cdk_deploy(template, stack)
        assert run.code == 0, run.problems
        return run

    def try_to_deploy(self, template: Template, stack: str = STACK_NAME) -> str:
        """Deploy as the CDK CLI does, without starting it. Returns the same as `assembly.deploy`."""
        return assembly.deploy(self.aws, template.file.parent, stack)

    def deploy(self, template: Template, stack: str = STACK_NAME) -> None:
        """Deploy as the CDK CLI does, without starting it."""
        status = self.try_to_deploy(template, stack)
        assert status in ("CREATE_COMPLETE", "UPDATE_COMPLETE"), status

    def diff(self, template: Template) -> str:
        run = self.cdk("diff", STACK_NAME, app=template.file.parent)
        assert run.code == 0, run.problems
        return run.printed

    def destroy(self, stack: str = STACK_NAME) -> None:
        """Delete a stack as the CDK CLI does, without starting it."""
        status = assembly.destroy(self.aws, stack)
        assert status == "DELETE_COMPLETE", status

    def cdk_destroy(self, template: Template, stack: str = STACK_NAME) -> None:
        run = self.cdk("destroy", stack, "--force", app=template.file.parent)
        assert run.code == 0, run.problems

    def inventory(self) -> Inventory:
        """The resources of the account, except the assets in the bootstrap bucket."""
        (uploads,) = DeployedCluster(self.aws.client, BOOTSTRAP_STACK_NAME).ids("AWS::S3::Bucket")
        found = take_inventory(self.aws.client)
        return {kind: frozenset(one for one in ids if not one.startswith(f"{uploads}/")) for kind, ids in found.items()}

    def user_data(self, instance_id: str) -> str:
        parameters = {"InstanceId": instance_id, "Attribute": "userData"}
        return b64decode(self.aws.client("ec2").describe_instance_attribute(**parameters)["UserData"]["Value"]).decode()

    def cluster(self, stack: str = STACK_NAME) -> DeployedCluster:
        return DeployedCluster(self.aws.client, stack)


def differences(before: Inventory, after: Inventory) -> list[str]:
    """The added and removed resources between two moments, except for what stand-in nodes write every minute."""
    changes = [f"+ {one}" for one in added(before, after)] + [f"- {one}" for one in added(after, before)]
    return [one for one in changes if not (one[2:].startswith(OBJECTS) and f"/{USAGE_PREFIX}/" in one)]


def instance_ids(cluster: DeployedCluster) -> set[str]:
    return {instance["InstanceId"] for instance in cluster.instances}


def outputs(cluster: DeployedCluster) -> Mapping[str, str]:
    return {one["OutputKey"]: one["OutputValue"] for one in cluster.outputs}


def events(account: Account) -> list[dict[str, Any]]:
    """The events of the stack, oldest first."""
    pages = account.aws.client("cloudformation").get_paginator("describe_stack_events").paginate(StackName=STACK_NAME)
    return [event for page in pages for event in page["StackEvents"]][::-1]

"""This repository's stack, deployed by the CDK CLI to the embedded AWS of the lab."""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tools.lab.laboratory import REGION, Laboratory
from tools.lab.machine import may_raise_limits
from tools.lab.paths import REPOSITORY, RUN
from tools.lab.plans import LIMITS
from tools.lab.waiting import wait_for
from trainium_core.naming import STACK_NAME
from trainium_local.environment import ACCOUNT_ID


@dataclass(frozen=True, kw_only=True)
class Run:
    """The output of the CDK CLI, on either stream, and its exit code."""

    code: int
    output: str

    @property
    def errors(self) -> str:
        """The output without events of operations that are in progress or succeeded."""
        return "\n".join(line for line in self.output.splitlines() if not re.search("_(COMPLETE|IN_PROG)", line))


def bootstrap() -> Run:
    return _cdk("bootstrap", f"aws://{ACCOUNT_ID}/{REGION}")


def deploy(**settings: str) -> Run:
    """Deploy the cluster of cdk.json with these settings changed."""
    return _cdk("deploy", STACK_NAME, "--require-approval", "never", *context_options(**settings))


def context_options(**settings: str) -> list[str]:
    """The arguments that change these settings of cdk.json, for the CDK CLI and for `trn`."""
    suppressed = {} if may_raise_limits() else {"suppress_checks": ",".join(LIMITS)}
    return [word for name, value in (suppressed | settings).items() for word in ("-c", f"trn:{name}={value}")]


def destroy() -> Run:
    return _cdk("destroy", STACK_NAME, "--force")


def output(lab: Laboratory, name: str) -> str:
    (stack,) = lab.client("cloudformation").describe_stacks(StackName=STACK_NAME)["Stacks"]
    return next(output["OutputValue"] for output in stack["Outputs"] if output["OutputKey"] == name)


def failures(lab: Laboratory) -> Iterator[str]:
    """Why resources of the stack could not be created, from its events, newest first."""
    pages = lab.client("cloudformation").get_paginator("describe_stack_events").paginate(StackName=STACK_NAME)
    for page in pages:
        for event in page["StackEvents"]:
            if event["ResourceStatus"] == "CREATE_FAILED":
                yield event["ResourceStatusReason"]


def members(lab: Laboratory) -> set[str]:
    """IDs of the current instances of the Auto Scaling groups."""
    groups: Any = lab.client("autoscaling")
    return {instance["InstanceId"] for instance in groups.describe_auto_scaling_instances()["AutoScalingInstances"]}


def replace_instance(lab: Laboratory, instance_id: str) -> None:
    """Mark an instance unhealthy, as a failed status check of EC2 does, and wait until it has left its group."""
    groups: Any = lab.client("autoscaling")
    groups.set_instance_health(InstanceId=instance_id, HealthStatus="Unhealthy", ShouldRespectGracePeriod=False)
    wait_for(f"the removal of {instance_id}", lambda: instance_id not in members(lab))


def tag_value(lab: Laboratory, instance_id: str, key: str) -> str | None:
    mine = [{"Name": "resource-id", "Values": [instance_id]}, {"Name": "key", "Values": [key]}]
    return next((tag["Value"] for tag in lab.client("ec2").describe_tags(Filters=mine)["Tags"]), None)


def _cdk(*arguments: str) -> Run:
    run = subprocess.run(
        ["cdk", *arguments, "--no-color", "--no-notices", "--output", str(RUN / "cdk.out")],
        cwd=REPOSITORY,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return Run(code=run.returncode, output=run.stdout)

"""Roles run `trn` on a fleet with a KMS key, with the permissions that the fleet grants them, in its app or in another
one that imports the fleet. Policies are enforced.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
from aws_cdk import Duration, Environment, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

from tests.constructs.synth import REGION, Template, new_app, synthesize
from tests.deploy.account import Account
from tests.deploy.command import run_trn
from tests.deploy.permitted import with_role
from trainium_cdk import (
    ClusterNetwork,
    INeuronFleet,
    NeuronFleet,
    PilotEnd,
)
from trainium_local.environment import ACCOUNT_ID
from trainium_local.server import Settings

STACK, CLUSTER = "Operated", "operated"
RUNNER, OPERATOR, IMPORTING_RUNNER, IMPORTING_OPERATOR = "runner", "operator", "importing-runner", "importing-operator"


def template() -> Template:
    stack = Stack(new_app(), STACK, env=Environment(region=REGION))
    key: Any = kms.Key(stack, "Key")
    fleet = NeuronFleet(
        stack,
        "Fleet",
        instance_type=ec2.InstanceType("trn1.2xlarge"),
        vpc=ClusterNetwork(stack, "Network", zone_id="usw2-az4").vpc,
        cluster_name=CLUSTER,
        encryption_key=key,
        end=PilotEnd.after(Duration.hours(8)),
    )
    grant_to(fleet, RUNNER, OPERATOR)
    fleet.add_outputs()
    return synthesize(stack)


def grant_to(fleet: INeuronFleet, runner: str, operator: str) -> None:
    anyone: Any = iam.AccountRootPrincipal()
    fleet.grant_run_jobs(iam.Role(fleet.stack, "Runner", role_name=runner, assumed_by=anyone))
    fleet.grant_operate(iam.Role(fleet.stack, "Operator", role_name=operator, assumed_by=anyone))


def importing_template(account: Account) -> Template:
    """The template of an app that imports the fleet, with the outputs of the fleet's stack."""
    (described,) = account.aws.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"]
    outputs = {
        output["OutputKey"].removeprefix("FleetOutputs"): output["OutputValue"] for output in described["Outputs"]
    }

    def value(name: str) -> str:
        return outputs[next(key for key in outputs if key.startswith(name))]

    resources = account.aws.client("cloudformation").describe_stack_resources(StackName=STACK)["StackResources"]
    (key,) = [resource["PhysicalResourceId"] for resource in resources if resource["ResourceType"] == "AWS::KMS::Key"]
    stack = Stack(new_app(), "Importing", env=Environment(region=REGION, account=ACCOUNT_ID))
    bucket = s3.Bucket.from_bucket_attributes(
        stack,
        "Records",
        bucket_name=value("NodeRecords"),
        encryption_key=kms.Key.from_key_arn(stack, "Key", f"arn:aws:kms:{REGION}:{ACCOUNT_ID}:key/{key}"),
    )
    imported = NeuronFleet.from_neuron_fleet_attributes(
        stack,
        "Fleet",
        cluster_name=CLUSTER,
        auto_scaling_group_name=value("Group"),
        records_bucket=bucket,
        sleep_function_name=value("SleepFunction"),
        pilot_topic_arn=value("Notices"),
    )
    grant_to(imported, IMPORTING_RUNNER, IMPORTING_OPERATOR)
    return synthesize(stack)


@pytest.fixture(scope="module")
def account(start_account: Callable[[Settings], Account]) -> Account:
    made = start_account(Settings(iam="enforced"))
    made.deploy(template(), STACK)
    made.deploy(importing_template(made), "Importing")
    (made.folder / "job.toml").write_text('name = "echo"\ncommand = "echo done"\n')
    return made


def trn(account: Account, *arguments: str, code: int = 0) -> str:
    ran = run_trn(account, *arguments, "--cluster", CLUSTER, "--region", REGION)
    assert ran.code == code, f"trn {' '.join(arguments)}: {ran.printed}"
    assert code or "not authorized" not in ran.printed, ran.printed
    return ran.printed


@pytest.mark.parametrize("name", [RUNNER, OPERATOR, IMPORTING_RUNNER])
def test_granted_role_runs_a_job_and_reads_its_log(account: Account, name: str) -> None:
    role = with_role(account, name)
    assert "succeeded" in trn(role, "run", "job.toml", "--yes")
    assert "done" in trn(role, "logs")
    trn(role, "jobs")


@pytest.mark.parametrize("name", [OPERATOR, IMPORTING_OPERATOR])
def test_operator_reads_the_state_and_lets_the_fleet_sleep_and_wake(account: Account, name: str) -> None:
    role = with_role(account, name)
    assert "ready: 1 of 1 nodes verified" in trn(role, "nodes")
    assert json.loads(trn(role, "status", "--json"))
    trn(role, "sleep", "--yes", "--grace", "1s")
    assert account.cluster(STACK).instances == []
    assert "is awake: 1 of 1 nodes verified" in trn(role, "wake", "--yes")


def test_runner_may_not_put_the_fleet_to_sleep(account: Account) -> None:
    printed = trn(with_role(account, RUNNER), "sleep", "--yes", "--grace", "0", code=3)
    assert "is missing" in " ".join(printed.split())
    assert len(account.cluster(STACK).instances) == 1

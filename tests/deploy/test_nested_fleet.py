"""A fleet in a nested stack is deployed with its parent, found by `trn`, and leaves nothing."""

from collections.abc import Callable

from aws_cdk import Environment, NestedStack, Stack
from aws_cdk import aws_ec2 as ec2

from tests.constructs.synth import REGION, new_app, synthesize
from tests.deploy.account import Account, differences
from tests.deploy.command import run_trn
from tests.deploy.conftest import ON_DEMAND_TRN, QUOTA_VCPUS
from trainium_cdk import NeuronFleet
from trainium_local.server import Settings


def test_fleet_in_a_nested_stack_runs_a_job_and_is_destroyed(start_account: Callable[..., Account]) -> None:
    account = start_account(Settings(iam="enforced", quotas={ON_DEMAND_TRN: QUOTA_VCPUS}))
    before = account.inventory()
    stack = Stack(new_app(), "Parent", env=Environment(region=REGION))
    vpc = ec2.Vpc(stack, "Vpc", availability_zones=[f"{REGION}b"], nat_gateways=1)
    nested = NestedStack(stack, "Nested")
    NeuronFleet(nested, "Fleet", cluster_name="nested", instance_type=ec2.InstanceType("trn1.32xlarge"), vpc=vpc)
    account.deploy(synthesize(stack), "Parent")
    (account.folder / "hello.toml").write_text('name = "hello"\ncommand = "echo hello"\n')
    for command, shown in {
        ("list",): "1 cluster of account",
        ("nodes", "--cluster", "nested"): "1 of 1 nodes verified",
        ("status", "--cluster", "nested"): "1 of 1 nodes verified",
        ("run", "--cluster", "nested", "hello.toml"): "succeeded",
        ("destroy", "--cluster", "nested", "--yes", "--grace", "0"): "No resources of nested are left",
    }.items():
        ended = run_trn(account, *command)
        assert ended.code == 0, ended.printed
        assert shown in ended.printed, command
    account.destroy("Parent")
    assert differences(before, account.inventory()) == []

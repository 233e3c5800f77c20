"""The example in the docstring of each public construct is one that runs."""

import textwrap
from typing import Any

import aws_cdk
import pytest
from aws_cdk import Environment, Stack
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

import trainium_cdk
from tests.constructs.synth import REGION, new_app
from trainium_core import Plan

WITHOUT_EXAMPLE = {
    "ICompileCache": "an interface",
    "INeuronFleet": "an interface",
    "NodeFileSystem": "what file systems have in common",
    "PropsError": "raised",
}


INDENTATION = " " * 8


def example(name: str) -> str:
    """The block of a class's docstring that is indented further than its text."""
    lines = (getattr(trainium_cdk, name).__doc__ or "").splitlines()
    return textwrap.dedent("\n".join(line for line in lines if line.startswith(INDENTATION)))


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """What the examples find there: the names of the package, a VPC, a role, a bucket and a group of instances."""
    stack = Stack(new_app(), "Existing", env=Environment(region=REGION))
    vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2b"], nat_gateways=1)
    ec2_service: Any = iam.ServicePrincipal("ec2.amazonaws.com")
    return {
        **{name: getattr(trainium_cdk, name) for name in trainium_cdk.__all__},
        **{name: getattr(aws_cdk, name) for name in ("Duration", "RemovalPolicy", "Size")},
        **{"Plan": Plan, "ec2": ec2, "iam": iam, "kms": kms, "s3": s3, "vpc": vpc},
        "app": ec2.SecurityGroup(stack, "App", vpc=vpc),
        "data": s3.Bucket(stack, "Data"),
        "group": autoscaling.CfnAutoScalingGroup(stack, "Group", max_size="2", min_size="0"),
        "role": iam.Role(stack, "Role", assumed_by=ec2_service),
    }


@pytest.mark.parametrize("name", sorted(set(trainium_cdk.__all__) - set(WITHOUT_EXAMPLE)))
def test_the_example_of_a_public_name_runs(name: str, names: dict[str, Any]) -> None:
    code = example(name)
    assert name in code
    root = names["vpc"].node.root
    exec(code, {**names, "stack": Stack(root, name, env=Environment(region=REGION))})

"""The example in the docstring of each public construct runs and shows the methods of the construct."""

import inspect
import textwrap
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import aws_cdk
import pytest
from aws_cdk import Environment, Stack
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks as eks
from aws_cdk import aws_elasticloadbalancingv2 as elbv2
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns

import trainium_cdk
from tests.constructs.synth import REGION, new_app
from tests.constructs.test_public_names import public_attributes
from trainium_cdk.storage.node_file_system import NodeFileSystem
from trainium_core import Plan

WITHOUT_EXAMPLE = {
    "ICompileCache": "an interface",
    "INeuronFleet": "an interface",
    "Plan": "part of trainium_core",
    "PlanError": "an exception",
    "PropsError": "an exception",
    "plan_from_cdk": "a function of trainium_core",
}

CALLED_BY = {"attach_to_application_target_group": "add_targets", "attach_to_network_target_group": "add_targets"}
"""Methods that an example calls through another name."""

INDENTATION = " " * 8


def example(name: str) -> str:
    """The code block in a class's docstring."""
    text = (getattr(trainium_cdk, name).__doc__ or "").partition("Example:\n")[2]
    return textwrap.dedent("\n".join(line for line in text.splitlines() if line.startswith(INDENTATION)))


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """The names that examples use: those of the packages, and resources of another stack."""
    stack = Stack(new_app(), "Existing", env=Environment(region=REGION))
    vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2b"], nat_gateways=1)
    ec2_service: Any = iam.ServicePrincipal("ec2.amazonaws.com")
    balancer = elbv2.ApplicationLoadBalancer(stack, "Balancer", vpc=vpc)
    return {
        **{name: getattr(trainium_cdk, name) for name in trainium_cdk.__all__},
        **{name: getattr(aws_cdk, name) for name in ("Duration", "RemovalPolicy", "Size")},
        **{
            "Plan": Plan,
            "datetime": datetime,
            "timezone": timezone,
            "ec2": ec2,
            "eks": eks,
            "iam": iam,
            "kms": kms,
            "s3": s3,
            "targets": targets,
            "vpc": vpc,
        },
        "app": ec2.SecurityGroup(stack, "App", vpc=vpc),
        "cluster": eks.Cluster.from_cluster_attributes(stack, "Cluster", cluster_name="prod"),
        "data": s3.Bucket(stack, "Data"),
        "group": autoscaling.CfnAutoScalingGroup(stack, "Group", max_size="2", min_size="0"),
        "monitored": ec2.SecurityGroup(stack, "Monitored", vpc=vpc),
        "listener": balancer.add_listener("Listener", port=80),
        **{
            name: iam.Role(stack, name, assumed_by=ec2_service)
            for name in ("maintainer", "operator", "pipeline", "reader", "role")
        },
        "topic": sns.Topic(stack, "Topic"),
    }


@pytest.mark.parametrize("name", sorted(set(trainium_cdk.__all__) - set(WITHOUT_EXAMPLE)))
def test_example_of_public_name_runs(
    name: str, names: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("setup.sh").write_text("apt-get install --yes htop\n")
    code = example(name)
    assert name in code
    root = names["vpc"].node.root
    exec(code, {**names, "stack": Stack(root, name, env=Environment(region=REGION))})


@pytest.mark.parametrize("name", sorted(set(trainium_cdk.__all__) - set(WITHOUT_EXAMPLE)))
def test_example_of_public_name_shows_its_methods(name: str) -> None:
    """Except the methods of NodeFileSystem, which only a fleet calls."""
    code, of_file_systems = example(name), vars(NodeFileSystem)
    methods = [path.rpartition(".")[2] for path, value in public_attributes(name) if inspect.isroutine(value)]
    called = {CALLED_BY.get(method, method) for method in methods if method not in of_file_systems}
    assert [method for method in called if f".{method}(" not in code] == []

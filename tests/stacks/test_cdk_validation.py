"""Checks at synthesis: CloudFormation Validate, and cdk-nag as a plugin."""

import json
from pathlib import Path

import pytest
from aws_cdk import Environment, Stack, Stage, Validations
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from cdk_nag import AwsSolutionsChecks

from stacks.trn_cluster_stack import TrnClusterStack
from tests.constructs.synth import REGION, a_plan, feature_flags, new_app, new_stack, synthesize
from tests.stacks.other_stacks import EVERY, settings_of, stack_of
from tests.stacks.variants import COVERING, VARIANTS
from trainium_cdk import ClusterNetwork, CompileCache, NeuronFleet
from trainium_core.naming import STACK_NAME


def test_cloudformation_validate_is_on() -> None:
    assert feature_flags()["@aws-cdk/core:validateAgainstDefaultRules"] is True


def test_template_that_cloudformation_refuses_does_not_synthesise() -> None:
    stack = new_stack(validated=True)
    ec2.CfnSubnet(stack, "Subnet", vpc_id="vpc-0123456789abcdef0").add_property_override("CidrBlok", "10.0.0.0/24")
    with pytest.raises(RuntimeError, match="CidrBlok"):
        synthesize(stack)


def findings(assembly: Path) -> list[str]:
    """All findings of validations, except for the warnings that a plan itself causes."""
    report = json.loads((assembly / "validation-report.json").read_text())
    return [
        f"{plugin['pluginName']}: {violation['ruleName']}: {violation['description']}"
        for plugin in report["pluginReports"]
        for violation in plugin["violations"]
        if not violation["ruleName"].startswith("Annotation::trn:")
    ]


@pytest.mark.parametrize("name", [*COVERING, *EVERY])
def test_cloudformation_validate_and_cdk_nag_find_nothing_unexplained(name: str, tmp_path: Path) -> None:
    settings = VARIANTS[name] if name in VARIANTS else settings_of(name)
    kind = TrnClusterStack if name in VARIANTS else stack_of(name)
    app = new_app(tmp_path, validated=True)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    kind(app, STACK_NAME, plan=a_plan(**settings))
    app.synth()
    assert findings(tmp_path) == []


def test_cdk_nag_finds_only_careless_resources_of_the_app() -> None:
    """The app also adds a statement to the nodes' role, which the fleet's acknowledgements do not cover."""
    app = new_app()
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    stage = Stage(app, "Prod", env=Environment(region=REGION))
    cache = CompileCache(Stack(stage, "Shared"), "Cache")
    stack = Stack(stage, "Cluster")
    network = ClusterNetwork(stack, "Network", zone_id="usw2-az4")
    fleet = NeuronFleet(stack, "Fleet", instance_type=ec2.InstanceType("trn1.32xlarge"), vpc=network.vpc, cache=cache)
    open_to_all = s3.BlockPublicAccess(
        block_public_acls=False, block_public_policy=False, ignore_public_acls=False, restrict_public_buckets=False
    )
    s3.Bucket(stack, "Careless", public_read_access=True, block_public_access=open_to_all)
    user = iam.User(stack, "Wide")
    user.add_to_policy(iam.PolicyStatement(actions=["s3:*"], resources=["*"]))
    fleet.role.add_to_principal_policy(iam.PolicyStatement(actions=["sqs:*"], resources=["*"]))
    with pytest.raises(RuntimeError, match="ValidationFailed"):
        app.synth()
    report = json.loads((Path(app.outdir) / "validation-report.json").read_text())
    found = {
        (construct["constructPath"].removeprefix("Prod/Cluster/"), violation["ruleName"].removeprefix("AwsSolutions-"))
        for plugin in report["pluginReports"]
        if plugin["pluginName"] == "AwsSolutions"
        for violation in plugin["violations"]
        for construct in violation["violatingConstructs"]
    }
    assert found == {
        ("Careless/Resource", "S1"),
        ("Careless/Resource", "S2"),
        ("Careless/Resource", "S10"),
        ("Careless/Policy/Resource", "S10"),
        ("Wide/DefaultPolicy/Resource", "IAM5[Action::s3:*]"),
        ("Wide/DefaultPolicy/Resource", "IAM5[Resource::*]"),
        ("Fleet/Role/DefaultPolicy/Resource", "IAM5[Action::sqs:*]"),
    }

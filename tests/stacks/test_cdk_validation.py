"""What the CDK itself checks at every synth, CloudFormation Validate, and cdk-nag, which plugs in there."""

import json
from pathlib import Path

import pytest
from aws_cdk import Validations
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3
from cdk_nag import AwsSolutionsChecks
from hypothesis import given, settings

from stacks.trn_cluster_stack import TrnClusterStack
from tests.constructs.plans import plans
from tests.constructs.synth import a_plan, feature_flags, new_app, new_stack, plan_template, synthesize
from tests.stacks.other_stacks import EVERY, settings_of, stack_of
from tests.stacks.variants import VARIANTS
from trainium_core import Plan
from trainium_core.naming import STACK_NAME


def test_cloudformation_validate_is_on() -> None:
    assert feature_flags()["@aws-cdk/core:validateAgainstDefaultRules"] is True


def test_a_template_that_cloudformation_would_refuse_does_not_synthesise() -> None:
    stack = new_stack(validated=True)
    ec2.CfnSubnet(stack, "Subnet", vpc_id="vpc-0123456789abcdef0").add_property_override("CidrBlok", "10.0.0.0/24")
    with pytest.raises(RuntimeError, match="CidrBlok"):
        synthesize(stack)


def findings(assembly: Path) -> list[str]:
    """What any validation has to say, but for the warnings that a plan itself asks for."""
    report = json.loads((assembly / "validation-report.json").read_text())
    return [
        f"{plugin['pluginName']}: {violation['ruleName']}: {violation['description']}"
        for plugin in report["pluginReports"]
        for violation in plugin["violations"]
        if not violation["ruleName"].startswith("Annotation::trn:")
    ]


@pytest.mark.parametrize("name", [*VARIANTS, *EVERY])
def test_no_finding_of_cloudformation_validate_and_none_of_cdk_nag_without_a_reason(name: str) -> None:
    app = new_app(validated=True)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    if name in VARIANTS:
        stack = TrnClusterStack(app, STACK_NAME, plan=a_plan(**VARIANTS[name]))
    else:
        stack = stack_of(name)(app, "Stack", plan=a_plan(**settings_of(name)))
    assert findings(synthesize(stack).file.parent) == []


@given(plan=plans())
@settings(max_examples=8)
def test_cloudformation_validate_accepts_any_other_plan(plan: Plan) -> None:
    plan_template(plan, validated=True)


def test_cdk_nag_would_find_a_careless_bucket() -> None:
    app = new_app(validated=True)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    stack = TrnClusterStack(app, STACK_NAME, plan=a_plan())
    s3.Bucket(stack, "Careless")
    with pytest.raises(RuntimeError):
        synthesize(stack)

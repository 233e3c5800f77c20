"""TrnClusterStack: properties of the whole template."""

import json
import re
from typing import Any

import pytest
from aws_cdk import App
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER
from hypothesis import given, settings

from tests.constructs.plans import plans
from tests.constructs.synth import (
    REGION,
    Json,
    Template,
    as_list,
    as_text,
    cluster_template,
    plan_template,
    statements,
)
from trainium_cdk import PlanStack
from trainium_core import Plan
from trainium_core.naming import ASLEEP_PARAMETER
from trainium_runtime.naming import CLUSTER_TAG, PROJECT_TAG

ALLOWED_ON_EVERYTHING = {
    "ssm:UpdateInstanceInformation",
    "ssmmessages:CreateControlChannel",
    "ssmmessages:CreateDataChannel",
    "ssmmessages:OpenControlChannel",
    "ssmmessages:OpenDataChannel",
    "autoscaling:DescribeAutoScalingGroups",
    "autoscaling:DescribeScalingActivities",
    "cloudwatch:GetMetricStatistics",
    "ec2:DescribeCapacityReservations",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstances",
    "servicequotas:GetAWSDefaultServiceQuota",
    "servicequotas:GetServiceQuota",
    "servicequotas:ListRequestedServiceQuotaChangeHistoryByQuota",
}
"""Actions that roles may have on all resources: sessions on nodes, and reads by the functions."""

FILE_SYSTEM_PORTS = {(988, 988), (1018, 1023), (2049, 2049)}
"""Ports of Lustre and NFS, between the group of the nodes and that of a file system."""


def kinds(template: Template) -> dict[str, str]:
    return {name: resource["Type"] for name, resource in template.resources().items()}


def rules(template: Template, direction: str) -> list[Json]:
    """Every security group rule of one direction, Ingress or Egress, separate or inline."""
    inline = [
        rule
        for group in template.resources("AWS::EC2::SecurityGroup").values()
        for rule in group["Properties"].get(f"SecurityGroup{direction}", [])
    ]
    separate = [rule["Properties"] for rule in template.resources(f"AWS::EC2::SecurityGroup{direction}").values()]
    return inline + separate


def tags(resource: Json) -> dict[str, str]:
    """The tags of the resource itself."""
    properties = resource["Properties"]
    if resource["Type"] == "AWS::EC2::LaunchTemplate":
        (specification,) = properties["TagSpecifications"]
        return {tag["Key"]: tag["Value"] for tag in specification["Tags"]}
    named = next((properties[key] for key in ("Tags", "FileSystemTags", "ResourceTags") if key in properties), [])
    return named if isinstance(named, dict) else {tag["Key"]: tag["Value"] for tag in named}


def is_taggable(resource_type: str) -> bool:
    """Whether CloudFormation's own schema says that a resource supports tags."""
    if resource_type.startswith("Custom::"):
        return False
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema(REGION, resource_type).schema
    return schema.get("tagging", {}).get("taggable", "Tags" in schema["properties"])


@given(plan=plans())
@settings(max_examples=15)
def test_template_of_any_plan_is_valid(plan: Plan) -> None:
    template, vpc_cidr = plan_template(plan), plan.network.vpc_cidr
    for rule in rules(template, "Ingress"):
        itself = rule.get("GroupId") is not None and rule["GroupId"] == rule.get("SourceSecurityGroupId")
        https_from_the_vpc = [rule.get(key) for key in ("CidrIp", "FromPort", "ToPort")] == [vpc_cidr, 443, 443]
        from_a_group = "SourceSecurityGroupId" in rule and rule["IpProtocol"] == "tcp"
        shares_files = from_a_group and (rule["FromPort"], rule["ToPort"]) in FILE_SYSTEM_PORTS
        assert itself or https_from_the_vpc or shares_files, rule
    assert all("KeyName" not in str(resource) for resource in template.resources().values())
    assert all(action in ALLOWED_ON_EVERYTHING for action in actions_on_everything(template))
    assert len(template.resources("AWS::EC2::NatGateway")) == (
        1 if plan.network.effective_egress == "nat-gateway" else 0
    )
    if plan.capacity == "capacity-block":
        assert not template.resources("AWS::EC2::PlacementGroup")
    for logical_id, resource in template.resources().items():
        if is_taggable(resource["Type"]):
            assert tags(resource).get(CLUSTER_TAG) == plan.cluster_name, logical_id
    policies = {(r["Type"], r["DeletionPolicy"]) for r in template.resources().values() if "DeletionPolicy" in r}
    new_cache_is_kept = plan.cache.bucket is None and plan.cache.outlives_cluster
    kept = {(kind, policy) for kind, policy in policies if policy != "Delete"}
    assert kept == ({("AWS::S3::Bucket", "RetainExceptOnCreate")} if new_cache_is_kept else set())
    runtimes = {f["Properties"]["Runtime"] for f in template.resources("AWS::Lambda::Function").values()}
    assert all(runtime.startswith("python3.") for runtime in runtimes)
    assert len(template.resources("AWS::Logs::LogGroup")) == len(template.resources("AWS::Lambda::Function"))


def actions_on_everything(template: Template) -> list[str]:
    return [
        action
        for statement in statements(template)
        if statement["Effect"] == "Allow" and "*" in as_list(statement["Resource"])
        for action in as_list(statement["Action"])
    ]


def test_every_action_allowed_on_everything_is_used() -> None:
    assert set(actions_on_everything(cluster_template())) == ALLOWED_ON_EVERYTHING


def test_no_action_is_a_wildcard() -> None:
    actions = [action for statement in statements(cluster_template()) for action in as_list(statement["Action"])]
    assert not [action for action in actions if "*" in action]


def test_roles_are_assumed_by_instances_functions_and_schedules_only() -> None:
    services = {
        statement["Principal"]["Service"]
        for role in cluster_template().resources("AWS::IAM::Role").values()
        for statement in role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    }
    assert services == {"ec2.amazonaws.com", "lambda.amazonaws.com", "scheduler.amazonaws.com"}


@pytest.mark.parametrize(
    ("settings", "functions", "roles"),
    [
        ({"cloudwatch_metrics": "none"}, 3, ["ec2", "lambda", "lambda", "lambda"]),
        ({}, 3, ["ec2", "lambda", "lambda", "lambda", "scheduler"]),
        ({"ends": "5d", "budget_usd": 500}, 3, ["ec2", "lambda", "lambda", "lambda", "scheduler"]),
        ({"ends": "5d", "ends_action": "destroy"}, 4, ["ec2", "lambda", "lambda", "lambda", "lambda", "scheduler"]),
    ],
    ids=str,
)
def test_stack_has_few_functions_and_roles(settings: dict[str, Any], functions: int, roles: list[str]) -> None:
    template = cluster_template(**settings)
    services = [
        role["Properties"]["AssumeRolePolicyDocument"]["Statement"][0]["Principal"]["Service"]
        for role in template.resources("AWS::IAM::Role").values()
    ]
    assert sorted(service.removesuffix(".amazonaws.com") for service in services) == roles
    assert len(template.resources("AWS::Lambda::Function")) == functions


def test_stack_sleeps_by_a_parameter_and_is_awake_at_first() -> None:
    parameter = cluster_template().json["Parameters"][ASLEEP_PARAMETER]
    assert (parameter["Default"], parameter["AllowedValues"]) == ("false", ["true", "false"])


def test_no_managed_policy_is_attached() -> None:
    assert not [role for role in cluster_template().resources("AWS::IAM::Role").values() if "Managed" in str(role)]


def test_template_of_thousand_nodes_differs_only_in_digits() -> None:
    templates = [cluster_template(nodes=nodes, cloudwatch_metrics="cluster") for nodes in (1, 1000)]
    texts = {re.sub(r"\d+", "0", template.file.read_text()) for template in templates}
    assert len(texts) == 1


def test_stack_is_in_the_region_of_the_plan() -> None:
    manifest = json.loads((cluster_template().file.parent / "manifest.json").read_text())
    assert manifest["artifacts"]["TrnClusterStack"]["environment"].endswith("/us-west-2")


def test_user_tag_is_on_every_resource_but_placement_groups() -> None:
    template = plan_template(Plan(instance_type="trn1.32xlarge", region=REGION, nodes=2, tags={"team": "ml"}))
    taggable = [resource for resource in template.resources().values() if is_taggable(resource["Type"])]
    assert len(taggable) > 10
    without = [resource["Type"] for resource in taggable if tags(resource).get("team") != "ml"]
    # Its tags are create-only: a changed user tag would replace it, and all nodes with it.
    assert without == ["AWS::EC2::PlacementGroup"]


def outputs(**settings: Any) -> dict[str, str]:
    return {name: as_text(output["Value"]) for name, output in cluster_template(**settings).json["Outputs"].items()}


def test_outputs_have_these_names_in_this_order() -> None:
    assert list(outputs()) == [
        "Session",
        "Nodes",
        "Torchrun",
        "CompileCache",
        "Sleep",
        "Wake",
        "Destroy",
        "Group",
        "NodeRole",
        "NodeSecurityGroup",
        "NodeRecords",
        "SleepFunction",
        "ControllerFunction",
        "LaunchTemplate",
        "Fleet",
        "VerifiedNodes",
    ]


def test_result_of_the_deployment_is_a_sentence_and_a_number() -> None:
    readiness = cluster_template().logical_id("Custom::TrnFleetReadiness")
    shown = outputs()
    assert (shown["Fleet"], shown["VerifiedNodes"]) == (f"${{{readiness}.Summary}}", f"${{{readiness}.Nodes}}")


def test_torchrun_line_is_for_this_cluster() -> None:
    assert "--nnodes=4 --nproc_per_node=32" in outputs(nodes=4)["Torchrun"]


def test_stack_has_the_project_id_as_a_tag() -> None:
    app = App()
    PlanStack(app, "TrnClusterStack", plan=Plan(instance_type="trn1.32xlarge", region=REGION, project_id="mine"))
    assert app.synth().get_stack_by_name("TrnClusterStack").tags[PROJECT_TAG] == "mine"

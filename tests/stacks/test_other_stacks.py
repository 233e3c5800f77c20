"""The rules for TrnClusterStack apply to the other stacks too: checks, tags, and complete deletion."""

from collections import Counter

import pytest

from tests.constructs.synth import REGION, Json, a_plan, new_app, references, synthesize
from tests.constructs.training import pcs_template
from tests.stacks.linting import CDK_WRITES_NEEDLESS_DEPENDENCIES, lint
from tests.stacks.other_stacks import EVERY, PCS, TRAINING, engine_of, other_template, settings_of, stack_of
from tests.stacks.test_trn_cluster_stack import is_taggable, kinds, rules, tags
from trainium_core.costs.estimate import stack_cost_items
from trainium_core.stacks.cluster_resources import cluster_resources
from trainium_runtime.naming import CLUSTER_TAG

BILLED = {
    "AWS::EC2::EIP",
    "AWS::EC2::NatGateway",
    "AWS::EC2::VPCEndpoint",
    "AWS::EFS::FileSystem",
    "AWS::FSx::FileSystem",
    "AWS::S3::Bucket",
    "AWS::PCS::Cluster",
    "AWS::PCS::ComputeNodeGroup",
}

every_stack = pytest.mark.parametrize("name", EVERY)


@every_stack
def test_cfn_lint_finds_only_needless_dependencies(name: str) -> None:
    region = settings_of(name).get("region", REGION)
    found = Counter(finding.rule for finding in lint(other_template(name).file, region))
    found.pop(CDK_WRITES_NEEDLESS_DEPENDENCIES, None)
    assert found == {}


@every_stack
def test_every_taggable_resource_has_the_cluster_tags(name: str) -> None:
    template = other_template(name)
    taggable = {key: r for key, r in template.resources().items() if is_taggable(r["Type"])}
    assert {key: tags(r).get(CLUSTER_TAG) for key, r in taggable.items()} == dict.fromkeys(taggable, "trn-pilot")


@every_stack
def test_no_ingress_is_allowed_from_elsewhere(name: str) -> None:
    groups = other_template(name).resources("AWS::EC2::SecurityGroup")
    for rule in rules(other_template(name), "Ingress"):
        among_own = references(rule.get("SourceSecurityGroupId")) & groups.keys()
        itself = rule.get("GroupId") is not None and rule["GroupId"] == rule.get("SourceSecurityGroupId")
        assert among_own or itself or (rule.get("CidrIp"), rule.get("FromPort")) == ("10.42.0.0/16", 443), rule


@every_stack
def test_functions_use_python_and_log_groups_of_the_stack_are_deleted(name: str) -> None:
    template = other_template(name)
    functions = template.resources("AWS::Lambda::Function").values()
    assert all(function["Properties"]["Runtime"].startswith("python3.") for function in functions)
    owned = {r["DeletionPolicy"] for r in template.resources("AWS::Logs::LogGroup").values()}
    assert owned <= {"Delete"}


@pytest.mark.parametrize("names", [TRAINING, PCS], ids=["training", "pcs"])
def test_thousand_nodes_have_the_resources_of_two(names: dict[str, Json]) -> None:
    name = next(iter(names))
    app = new_app()
    many = synthesize(stack_of(name)(app, stack_of(name).__name__, plan=a_plan(**{**settings_of(name), "nodes": 1000})))
    assert kinds(many) == kinds(other_template(name))


@every_stack
def test_every_resource_belongs_to_the_cluster(name: str) -> None:
    """Without `--whole-stacks`, `trn destroy` keeps a stack with other resources."""
    resources = other_template(name).resources()
    assert cluster_resources(resources, "trn-pilot") == resources.keys()


@every_stack
def test_resources_of_billed_types_have_a_line_in_the_estimate(name: str) -> None:
    plan = a_plan(**{**settings_of(name), "stacks": (engine_of(name),)})
    resources = other_template(name).resources().values()
    gateways = [r for r in resources if r["Properties"].get("VpcEndpointType", "Gateway") == "Gateway"]
    free = [r for r in gateways if r["Type"] == "AWS::EC2::VPCEndpoint"]
    found = {r["Type"] for r in resources if r not in free}
    assert {item.resource_type for item in stack_cost_items(plan)} & BILLED == found & BILLED


@pytest.mark.parametrize("settings", [{}, {"ends": "5d"}, {"job_notices": True}], ids=str)
def test_alarms_of_slurm_are_counted(settings: Json) -> None:
    settings = {**PCS["pcs"], **settings}
    items = stack_cost_items(a_plan(**settings))
    counted = sum(item.quantity for item in items if item.resource_type == "AWS::CloudWatch::Alarm")
    assert counted == len(pcs_template(**settings).resources("AWS::CloudWatch::Alarm"))

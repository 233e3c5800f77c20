"""TrainiumCluster: the connected constructs of a plan."""

import re
from typing import Any

import pytest
from aws_cdk import Environment, Stack, assertions

from tests.constructs.synth import EXISTING_NETWORK, Template, a_plan, cluster_template, new_app, new_stack, synthesize
from trainium_cdk import TrainiumCluster
from trainium_cdk.sagemaker.sagemaker_training import PlannedTraining
from trainium_core import PlanError
from trainium_core.engines.ec2.warnings import cluster_warnings


def cluster(**settings: Any) -> tuple[TrainiumCluster, Template]:
    stack = new_stack()
    construct = TrainiumCluster(stack, "Cluster", plan=a_plan(**settings))
    return construct, synthesize(stack)


def subnet_zones(template: Template) -> set[str]:
    return {subnet["Properties"]["AvailabilityZoneId"] for subnet in template.resources("AWS::EC2::Subnet").values()}


def test_new_subnet_is_in_the_zone_of_the_plan() -> None:
    _, template = cluster(availability_zone_id="usw2-az4")
    assert subnet_zones(template) == {"usw2-az4"}


def test_first_zone_that_offers_the_type_is_the_default() -> None:
    _, template = cluster()
    assert subnet_zones(template) == {"usw2-az1"}


def test_only_nodes_behind_a_nat_gateway_may_use_http() -> None:
    ports = {}
    for egress in ("vpc-endpoints", "nat-gateway"):
        _, template = cluster(egress=egress)
        (group,) = [g for name, g in template.resources("AWS::EC2::SecurityGroup").items() if "Fleet" in name]
        ports[egress] = {rule["FromPort"] for rule in group["Properties"]["SecurityGroupEgress"]}
    assert ports == {"vpc-endpoints": {443}, "nat-gateway": {80, 443}}


def test_warnings_of_the_plan_are_shown_at_synth() -> None:
    plan = a_plan(egress="none")
    stack = new_stack()
    TrainiumCluster(stack, "Cluster", plan=plan)
    output = assertions.Annotations.from_stack(stack).find_warning("*", assertions.Match.any_value())
    shown = [str(message.entry.data) for message in output]
    for warning in cluster_warnings(plan).values():
        assert any(warning in text for text in shown), warning


def test_nodes_in_existing_network_depend_on_its_added_endpoint() -> None:
    _, template = cluster(**EXISTING_NETWORK)
    group = template.resources("AWS::AutoScaling::AutoScalingGroup")
    assert template.logical_id("AWS::EC2::VPCEndpoint") in next(iter(group.values()))["DependsOn"]


def test_outputs_have_the_id_of_the_construct_as_prefix_except_in_a_plan_stack() -> None:
    _, template = cluster(ends="40h", egress="none")
    names = set(template.json["Outputs"])
    in_plan_stack = set(cluster_template(ends="40h", egress="none").json["Outputs"])
    assert {"Nodes", "Destroy", "NodeRecords", "Fleet", "Ends", "Notices"} < in_plan_stack
    assert "Session" not in in_plan_stack
    assert {re.sub("^ClusterOutputs(.*)[0-9A-F]{8}$", r"\1", name) for name in names} == in_plan_stack


@pytest.mark.parametrize("construct", [TrainiumCluster, PlannedTraining])
def test_stack_in_another_region_than_the_plan_is_refused(construct: Any) -> None:
    stack = Stack(new_app(), "Training", env=Environment(region="us-east-2"))
    with pytest.raises(
        PlanError, match=r"trn:region: got 'us-west-2'\n    allowed: us-east-2, the region of the stack"
    ):
        construct(stack, "Planned", plan=a_plan())


def test_stack_without_region_is_a_warning() -> None:
    stack = Stack(new_app(), "Training")
    TrainiumCluster(stack, "Cluster", plan=a_plan())
    assertions.Annotations.from_stack(stack).has_warning(
        "/Training/Cluster",
        assertions.Match.string_like_regexp("the plan is for us-west-2, and the stack has no region"),
    )

"""SleepSwitch: resources that exist only while a cluster is awake, and their dependents."""

from typing import Any

import pytest
from aws_cdk import aws_ec2 as ec2

from tests.constructs.synth import Template, a_plan, cluster_template, new_stack, synthesize
from trainium_cdk import SleepSwitch, TrainiumCluster

GROUP, READINESS = "AWS::AutoScaling::AutoScalingGroup", "Custom::TrnFleetReadiness"


def conditional_resources(template: Template) -> dict[str, str]:
    """Type by logical ID of the resources that exist only while the cluster is awake."""
    (awake,) = template.json["Conditions"]
    return {name: r["Type"] for name, r in template.resources().items() if r.get("Condition") == awake}


@pytest.mark.parametrize(
    ("egress", "kinds"),
    [
        ("vpc-endpoints", ["AWS::EC2::VPCEndpoint", "AWS::EC2::VPCEndpoint"]),
        ("nat-gateway", ["AWS::EC2::EIP", "AWS::EC2::NatGateway", "AWS::EC2::Route"]),
        ("none", []),
    ],
)
def test_only_egress_billed_by_the_hour_is_conditional(egress: str, kinds: list[str]) -> None:
    assert sorted(conditional_resources(cluster_template(egress=egress)).values()) == kinds


@pytest.mark.parametrize("egress", ["vpc-endpoints", "nat-gateway"])
def test_nodes_depend_on_all_conditional_egress(egress: str) -> None:
    template = cluster_template(egress=egress)
    assert conditional_resources(template).keys() <= template.before(template.logical_id(READINESS))


@pytest.mark.parametrize("settings", [{}, {"egress": "nat-gateway"}, {"fsx_lustre": 1200, "efs": "new"}], ids=str)
def test_no_unconditional_resource_has_a_conditional_one_in_depends_on(settings: dict[str, Any]) -> None:
    template = cluster_template(**settings)
    named = {name for r in template.resources().values() if "Condition" not in r for name in r.get("DependsOn", [])}
    assert named.isdisjoint(conditional_resources(template))


def counts(properties: dict[str, Any], name: str) -> tuple[str, str]:
    """The number of nodes while the cluster is awake, and while it sleeps."""
    _, awake, asleep = properties[name]["Fn::If"]
    return (awake["Fn::Select"][1][0] if isinstance(awake, dict) else awake), asleep


@pytest.mark.parametrize("egress", ["vpc-endpoints", "none"])
def test_deployment_has_node_counts_awake_and_asleep(egress: str) -> None:
    template = cluster_template(nodes=3, egress=egress)
    assert counts(template.properties(READINESS), "Nodes") == ("3", "0")


def test_cluster_uses_the_switch_of_its_stack() -> None:
    stack = new_stack()
    TrainiumCluster(stack, "Cluster", plan=a_plan())
    assert counts(synthesize(stack).properties(READINESS), "Nodes") == ("2", "0")


def test_value_when_awake_works_without_a_fleet() -> None:
    stack = new_stack()
    switch = SleepSwitch(stack, "Switch")
    ec2.CfnVPC(stack, "Vpc", cidr_block=switch.value_when_awake("10.0.0.0/16", "10.1.0.0/16"))
    template = synthesize(stack)
    assert template.json["Parameters"]["Asleep"]["Default"] == "false"
    (awake,) = template.json["Conditions"]
    assert template.properties("AWS::EC2::VPC")["CidrBlock"] == {"Fn::If": [awake, "10.0.0.0/16", "10.1.0.0/16"]}

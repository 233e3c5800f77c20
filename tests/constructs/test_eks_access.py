"""Node groups for EKS: how nodes join the cluster, get addresses, and reach the zone of their reservation."""

import json
from typing import Any

import pytest
from aws_cdk import Environment, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_eks as eks
from aws_cdk import aws_eks_v2 as eks_v2
from aws_cdk import aws_lambda as lambda_

from tests.constructs.plans import RESERVATION
from tests.constructs.synth import REGION, granted, new_app, new_stack, statements, synthesize
from tests.constructs.test_eks import CLUSTER_GROUP, GROUP, TRN1, existing_cluster, group_template
from trainium_cdk import Capacity, NeuronFleet, NeuronNodeGroup, NodeVerification, PropsError

MANIFEST = "Custom::AWSCDK-EKS-KubernetesResource"
ASSIGN = "ec2:AssignIpv6Addresses"
ENV = Environment(region=REGION, account="111122223333")


def cluster_with_kubectl(stack: Stack, **props: Any) -> eks.Cluster:
    layer = lambda_.LayerVersion.from_layer_version_arn(
        stack, "Layer", f"arn:aws:lambda:{REGION}:111122223333:layer:kubectl:1"
    )
    vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2a", "us-west-2b"], nat_gateways=1)
    version = eks.KubernetesVersion.V1_33
    return eks.Cluster(stack, "Cluster", vpc=vpc, version=version, kubectl_layer=layer, default_capacity=0, **props)


def test_config_map_that_the_app_writes_has_the_role_of_the_nodes() -> None:
    stack = Stack(new_app(), "Stack", env=ENV)
    cluster = cluster_with_kubectl(stack)
    cluster.aws_auth.add_account("444455556666")
    group = NeuronNodeGroup(stack, "Group", cluster=cluster, instance_type=TRN1)
    role = stack.get_logical_id(group.role.node.default_child)  # pyright: ignore[reportArgumentType]
    template = synthesize(stack)
    manifest = template.properties(MANIFEST)
    assert manifest["Overwrite"] is True
    text = json.dumps(manifest["Manifest"])
    assert role in text
    assert all(name in text for name in ("system:node:{{EC2PrivateDNSName}}", "system:bootstrappers", "system:nodes"))


@pytest.mark.parametrize("mode", [None, eks.AuthenticationMode.API, eks.AuthenticationMode.API_AND_CONFIG_MAP])
def test_config_map_that_the_app_does_not_write_is_left_to_eks(mode: eks.AuthenticationMode | None) -> None:
    app = new_app()
    stacks = [Stack(app, name, env=ENV) for name in ("Stack", "Other")]
    cluster = cluster_with_kubectl(stacks[0], authentication_mode=mode)
    for stack in stacks:
        NeuronNodeGroup(stack, "Group", cluster=cluster, instance_type=TRN1)
    assert "aws-auth" not in json.dumps(synthesize(stacks[0]).resources(MANIFEST))


def test_config_map_that_the_app_writes_after_the_group_fails_the_synthesis() -> None:
    stack = Stack(new_app(), "Stack", env=ENV)
    cluster = cluster_with_kubectl(stack)
    NeuronNodeGroup(stack, "Group", cluster=cluster, instance_type=TRN1)
    cluster.aws_auth.add_account("444455556666")
    with pytest.raises(RuntimeError, match=r"use cluster\.aws_auth before you create the group"):
        synthesize(stack)


def test_group_in_another_stack_than_its_config_map_is_refused() -> None:
    app = new_app()
    cluster = cluster_with_kubectl(Stack(app, "Cluster", env=ENV))
    cluster.aws_auth.add_account("444455556666")
    with pytest.raises(PropsError, match="cluster with authentication_mode=API_AND_CONFIG_MAP"):
        NeuronNodeGroup(Stack(app, "Nodes", env=ENV), "Group", cluster=cluster, instance_type=TRN1)


def test_objects_of_a_verification_can_contain_an_image_that_is_known_at_deployment() -> None:
    stack = Stack(new_app(), "Stack", env=ENV)
    image = ecr.Repository(stack, "Images").repository_uri_for_tag("1")
    verification = NodeVerification(stack, "Verification", image=image)
    cluster_with_kubectl(stack).add_manifest("Pods", *verification.objects)
    template = synthesize(stack)
    assert template.logical_id("AWS::ECR::Repository") in json.dumps(template.properties(MANIFEST)["Manifest"])


@pytest.mark.parametrize("version", [eks, eks_v2])
def test_nodes_of_an_ipv6_cluster_assign_addresses_to_their_interfaces(version: Any) -> None:
    stack = new_stack()
    vpc = existing_cluster(stack).vpc
    cluster = version.Cluster.from_cluster_attributes(
        stack,
        "Ipv6",
        cluster_name="ipv6",
        vpc=vpc,
        cluster_security_group_id=CLUSTER_GROUP,
        ip_family=version.IpFamily.IP_V6,
    )
    NeuronNodeGroup(stack, "Group", cluster=cluster, instance_type=TRN1)
    template = synthesize(stack)
    found = {arn for action, arn in granted(statements(template)) if action == ASSIGN}
    assert [arn.partition(":ec2:")[2].endswith(":network-interface/*") for arn in found] == [True]
    assert not any(action == ASSIGN for action, _ in granted(statements(group_template())))


def test_single_subnet_must_be_in_the_zone_of_the_reservation() -> None:
    stack = new_stack()
    block = Capacity.capacity_block(RESERVATION)
    NeuronNodeGroup(stack, "Group", cluster=existing_cluster(stack), instance_type=TRN1, capacity=block)
    template = synthesize(stack)
    (subnet,) = template.properties(GROUP)["Subnets"]
    properties = template.properties("Custom::TrnNodeSubnet")
    assert (properties["SubnetIds"], properties["ReservationId"]) == ([subnet], RESERVATION)
    assert template.logical_id("Custom::TrnNodeSubnet") in template.before(template.logical_id(GROUP))
    assert not group_template().resources("Custom::TrnNodeSubnet")


def test_zone_of_the_reservation_decides_among_several_subnets() -> None:
    stack = new_stack()
    vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2a", "us-west-2b"], nat_gateways=1)
    cluster = existing_cluster(stack, vpc=vpc)
    reserved, block = Capacity.reservation(RESERVATION), Capacity.capacity_block(RESERVATION.replace("0", "1"))
    NeuronNodeGroup(stack, "Group", cluster=cluster, instance_type=TRN1, capacity=reserved)
    NeuronFleet(stack, "Fleet", vpc=vpc, instance_type=TRN1, capacity=block)
    NeuronNodeGroup(stack, "OnDemand", cluster=cluster, instance_type=TRN1)
    template = synthesize(stack)
    choices = [one["Properties"].get("ReservationId") for one in template.resources("Custom::TrnNodeSubnet").values()]
    assert {*choices} == {RESERVATION, block.reservation_id, None}
    assert ("ec2:DescribeCapacityReservations", "*") in granted(statements(template))
    assert len(template.resources(GROUP)) == 2

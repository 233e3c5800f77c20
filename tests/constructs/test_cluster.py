"""TrainiumCluster: the constructs of a plan, wired."""

from typing import Any

import pytest
from aws_cdk import assertions

from tests.constructs.synth import OWN_NETWORK, Template, a_plan, new_stack, synthesize
from trainium_cdk import ClusterNetwork, ExistingNetwork, TrainiumCluster
from trainium_core.engines.ec2.warnings import cluster_warnings


def cluster(**settings: Any) -> tuple[TrainiumCluster, Template]:
    stack = new_stack()
    construct = TrainiumCluster(stack, "Cluster", plan=a_plan(**settings))
    return construct, synthesize(stack)


def test_nodes_go_into_a_new_network_by_default() -> None:
    construct, template = cluster(availability_zone_id="usw2-az4")
    assert isinstance(construct.network, ClusterNetwork)
    assert template.properties("AWS::EC2::Subnet")["AvailabilityZoneId"] == "usw2-az4"


def test_without_a_zone_the_first_that_offers_the_type_is_taken() -> None:
    _, template = cluster()
    assert template.properties("AWS::EC2::Subnet")["AvailabilityZoneId"] == "usw2-az1"


def test_nodes_go_into_your_own_subnet_where_given() -> None:
    construct, template = cluster(**OWN_NETWORK)
    assert isinstance(construct.network, ExistingNetwork)
    assert not template.resources("AWS::EC2::VPC")
    group = template.properties("AWS::AutoScaling::AutoScalingGroup")
    assert group["VPCZoneIdentifier"] == [OWN_NETWORK["subnet_id"]]


def test_the_addresses_of_the_network_are_the_plans() -> None:
    _, template = cluster(vpc_cidr="192.168.0.0/20")
    assert template.properties("AWS::EC2::VPC")["CidrBlock"] == "192.168.0.0/20"


def test_only_nodes_behind_a_nat_gateway_may_use_plain_http() -> None:
    ports = {}
    for egress in ("vpc-endpoints", "nat-gateway"):
        _, template = cluster(egress=egress)
        (group,) = [g for name, g in template.resources("AWS::EC2::SecurityGroup").items() if "Fleet" in name]
        ports[egress] = {rule["FromPort"] for rule in group["Properties"]["SecurityGroupEgress"]}
    assert ports == {"vpc-endpoints": {443}, "nat-gateway": {80, 443}}


@pytest.mark.parametrize(("at_destroy", "policy"), [("destroy", "Delete"), ("retain", "Retain")])
def test_the_cache_stays_or_goes_as_planned(at_destroy: str, policy: str) -> None:
    _, template = cluster(cache_at_destroy=at_destroy)
    (bucket,) = [bucket for name, bucket in template.resources("AWS::S3::Bucket").items() if "CompileCache" in name]
    assert bucket["DeletionPolicy"] == policy


def test_a_cache_bucket_of_your_own_makes_none() -> None:
    construct, template = cluster(cache_bucket="my-cache")
    assert not [name for name in template.resources("AWS::S3::Bucket") if "CompileCache" in name]
    assert construct.cache.url == "s3://my-cache/neuron-compile-cache"


def test_what_the_plan_warns_of_is_shown_at_synth() -> None:
    plan = a_plan(egress="none")
    stack = new_stack()
    TrainiumCluster(stack, "Cluster", plan=plan)
    output = assertions.Annotations.from_stack(stack).find_warning("*", assertions.Match.any_value())
    shown = [str(message.entry.data) for message in output]
    for warning in cluster_warnings(plan).values():
        assert any(warning in text for text in shown), warning


def test_nodes_in_your_own_network_wait_for_the_endpoint_that_is_added_to_it() -> None:
    _, template = cluster(**OWN_NETWORK)
    group = template.resources("AWS::AutoScaling::AutoScalingGroup")
    assert template.logical_id("AWS::EC2::VPCEndpoint") in next(iter(group.values()))["DependsOn"]

"""ClusterNetwork, new and existing."""

from functools import cache
from typing import get_args

import pytest
from aws_cdk import aws_ec2 as ec2

from tests.constructs.synth import EXISTING_NETWORK, Json, Template, as_text, cluster_template, new_stack, synthesize
from trainium_cdk import ClusterNetwork, EfaSecurityGroup, NeuronFleet
from trainium_cdk.network.network import Egress

EGRESSES: tuple[Egress, ...] = get_args(Egress)
CLOSED: tuple[Egress, ...] = ("vpc-endpoints", "none")
WAYS_OUT = ("AWS::EC2::InternetGateway", "AWS::EC2::NatGateway", "AWS::EC2::EIP", "AWS::EC2::Route")


@cache
def network(egress: Egress, cidr: str = "10.42.0.0/16") -> Template:
    stack = new_stack()
    ClusterNetwork(stack, "Network", zone_id="usw2-az4", cidr=cidr, egress=egress)
    return synthesize(stack)


def endpoints(template: Template, kind: str) -> dict[str, str]:
    """Logical ID by service, such as `ssm`, of the endpoints of one type."""
    return {
        as_text(resource["Properties"]["ServiceName"]).split(".")[-1]: logical_id
        for logical_id, resource in template.resources("AWS::EC2::VPCEndpoint").items()
        if resource["Properties"]["VpcEndpointType"] == kind
    }


@pytest.mark.parametrize("egress", EGRESSES)
def test_subnets_are_in_the_zone_and_assign_no_public_addresses(egress: Egress) -> None:
    for subnet in network(egress).resources("AWS::EC2::Subnet").values():
        assert subnet["Properties"]["AvailabilityZoneId"] == "usw2-az4"
        assert subnet["Properties"]["MapPublicIpOnLaunch"] is False


@pytest.mark.parametrize("egress", EGRESSES)
def test_nodes_reach_s3_through_a_gateway_endpoint(egress: Egress) -> None:
    template = network(egress)
    gateway = template.resources()[endpoints(template, "Gateway")["s3"]]["Properties"]
    tables = {
        association["Properties"]["RouteTableId"]["Ref"]
        for name, association in template.resources("AWS::EC2::SubnetRouteTableAssociation").items()
        if "NodesSubnet" in name
    }
    assert tables <= {table["Ref"] for table in gateway["RouteTableIds"]}
    assert len(tables) == 1


def policy_of(template: Template, service: str, kind: str = "Gateway") -> list[Json] | None:
    endpoint = template.resources()[endpoints(template, kind)[service]]["Properties"]
    return endpoint.get("PolicyDocument", {}).get("Statement")


@pytest.mark.parametrize("egress", CLOSED)
def test_closed_network_reaches_buckets_of_its_account_and_named_ones(egress: Egress) -> None:
    stack = new_stack()
    ClusterNetwork(stack, "Network", zone_id="usw2-az4", egress=egress, s3_buckets=["theirs"])
    own, packages, named = policy_of(synthesize(stack), "s3") or []
    assert own["Condition"] == {"StringEquals": {"aws:ResourceAccount": {"Ref": "AWS::AccountId"}}}
    assert (packages["Action"], as_text(packages["Resource"])) == (
        "s3:GetObject",
        "arn:aws:s3:::al2023-repos-us-west-2-de612dc2/*",
    )
    assert [as_text(arn).rpartition(":")[2] for arn in named["Resource"]] == ["theirs", "theirs/*"]
    assert len(policy_of(network(egress), "s3") or []) == 2


def test_nat_gateway_or_unlimited_buckets_leave_endpoint_open() -> None:
    assert policy_of(network("nat-gateway"), "s3") is None
    stack = new_stack()
    ClusterNetwork(stack, "Network", zone_id="usw2-az4", egress="none", s3_buckets=None)
    assert policy_of(synthesize(stack), "s3") is None


def test_session_endpoint_serves_principals_of_the_account() -> None:
    (statement,) = policy_of(network("vpc-endpoints"), "ssm", "Interface") or []
    assert statement["Condition"] == {"StringEquals": {"aws:PrincipalAccount": {"Ref": "AWS::AccountId"}}}


def test_buckets_of_the_plan_are_reachable() -> None:
    template = cluster_template(egress="none", job_inputs=("s3://their-data/tokens",), cache_bucket="team-cache")
    (*_, named) = policy_of(template, "s3") or []
    assert {as_text(arn).rpartition(":")[2].rstrip("/*") for arn in named["Resource"]} == {"their-data", "team-cache"}


@pytest.mark.parametrize("egress", CLOSED)
def test_closed_network_has_no_way_out(egress: Egress) -> None:
    assert {r["Type"] for r in network(egress).resources().values()}.isdisjoint(WAYS_OUT)


def test_default_route_of_nodes_is_the_nat_gateway() -> None:
    template = network("nat-gateway")
    routes = template.resources("AWS::EC2::Route").items()
    (route,) = [route["Properties"] for name, route in routes if "NodesSubnet" in name]
    assert route["DestinationCidrBlock"] == "0.0.0.0/0"
    assert route["NatGatewayId"] == {"Ref": template.logical_id("AWS::EC2::NatGateway")}


@pytest.mark.parametrize(
    ("egress", "services"), [("vpc-endpoints", {"ssm", "ssmmessages"}), ("nat-gateway", set()), ("none", set())]
)
def test_only_egress_vpc_endpoints_adds_session_endpoints(egress: Egress, services: set[str]) -> None:
    assert set(endpoints(network(egress), "Interface")) == services


def test_service_given_twice_or_added_already_gets_one_endpoint() -> None:
    stack = new_stack()
    ClusterNetwork(
        stack, "Network", zone_id="usw2-az4", egress="vpc-endpoints", endpoint_services=["pcs", "ssm", "pcs"]
    )
    services = [
        as_text(endpoint["Properties"]["ServiceName"]).split(".")[-1]
        for endpoint in synthesize(stack).resources("AWS::EC2::VPCEndpoint").values()
        if endpoint["Properties"]["VpcEndpointType"] == "Interface"
    ]
    assert sorted(services) == ["pcs", "ssm", "ssmmessages"]


def test_session_endpoints_accept_only_https_from_the_vpc() -> None:
    template = network("vpc-endpoints", "10.9.0.0/20")
    group = template.properties("AWS::EC2::SecurityGroup")
    (rule,) = group["SecurityGroupIngress"]
    assert (rule["CidrIp"], rule["IpProtocol"], rule["FromPort"], rule["ToPort"]) == ("10.9.0.0/20", "tcp", 443, 443)
    for logical_id in endpoints(template, "Interface").values():
        endpoint = template.resources()[logical_id]["Properties"]
        assert endpoint["SecurityGroupIds"] == [
            {"Fn::GetAtt": [template.logical_id("AWS::EC2::SecurityGroup"), "GroupId"]}
        ]
        assert endpoint["PrivateDnsEnabled"] is True


@pytest.mark.parametrize(("cidr", "nodes"), [("10.42.0.0/16", "10.42.0.0/17"), ("192.168.7.0/24", "192.168.7.0/25")])
@pytest.mark.parametrize("egress", EGRESSES)
def test_subnet_of_nodes_is_the_lower_half_of_the_cidr(egress: Egress, cidr: str, nodes: str) -> None:
    subnets = network(egress, cidr).resources("AWS::EC2::Subnet")
    (block,) = [subnet["Properties"]["CidrBlock"] for name, subnet in subnets.items() if "NodesSubnet" in name]
    assert block == nodes


def test_existing_network_gains_only_an_s3_endpoint() -> None:
    stack = new_stack()
    ClusterNetwork.from_cluster_network_attributes(stack, "Network", **EXISTING_NETWORK)
    template = synthesize(stack)
    assert list(endpoints(template, "Gateway")) == ["s3"]
    assert len(template.resources()) == 1
    endpoint = template.properties("AWS::EC2::VPCEndpoint")
    assert (endpoint["VpcId"], endpoint["RouteTableIds"]) == (
        EXISTING_NETWORK["vpc_id"],
        [EXISTING_NETWORK["route_table_id"]],
    )


def test_existing_network_without_route_table_is_not_changed() -> None:
    stack = new_stack()
    network = ClusterNetwork.from_cluster_network_attributes(
        stack, "Network", vpc_id=EXISTING_NETWORK["vpc_id"], subnet_id=EXISTING_NETWORK["subnet_id"]
    )
    EfaSecurityGroup(stack, "Group", vpc=network.vpc)
    template = synthesize(stack)
    assert not template.resources("AWS::EC2::VPCEndpoint")
    assert template.properties("AWS::EC2::SecurityGroup")["VpcId"] == EXISTING_NETWORK["vpc_id"]


@pytest.mark.parametrize("route_table_id", [EXISTING_NETWORK["route_table_id"], None])
def test_vpc_of_an_existing_network_places_a_fleet_in_its_subnet(route_table_id: str | None) -> None:
    stack = new_stack()
    network = ClusterNetwork.from_cluster_network_attributes(
        stack, "Network", **{**EXISTING_NETWORK, "route_table_id": route_table_id}
    )
    NeuronFleet(stack, "Fleet", instance_type=ec2.InstanceType("trn1.2xlarge"), vpc=network.vpc)
    group = synthesize(stack).properties("AWS::AutoScaling::AutoScalingGroup")
    assert group["VPCZoneIdentifier"] == [EXISTING_NETWORK["subnet_id"]]

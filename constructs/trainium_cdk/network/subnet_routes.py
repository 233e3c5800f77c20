"""Checks of what nodes reach from their subnet: S3, and the internet where they need it."""

import json
from collections.abc import Iterable, Sequence

import jsii
from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from constructs import IConstruct, IValidation


@jsii.implements(IValidation)
class ReachesS3:
    """Rejects a selection of only public and isolated subnets if, at the end of the synthesis, their VPC has no
    endpoint for S3 and none of the isolated ones has a default route.

    Nodes and training jobs have no public address. Imported VPCs are not checked, because their routes are not known.
    """

    def __init__(self, vpc: ec2.IVpc, subnets: Sequence[ec2.ISubnet]) -> None:
        self._vpc, self._subnets = vpc, subnets

    def validate(self) -> list[str]:
        """One sentence for each problem."""
        if not isinstance(self._vpc, ec2.Vpc) or not all(_has_no_egress(self._vpc, subnet) for subnet in self._subnets):
            return []
        if any(_is_for_s3(endpoint, self._vpc) for endpoint in _endpoints(self._vpc)):
            return []
        if _have_default_route(self._vpc, self._subnets):
            return []
        paths = ", ".join(subnet.node.path for subnet in self._subnets)
        return [
            f"vpc_subnets: got {paths}; allowed: a subnet that reaches S3, for which a public or isolated subnet "
            f"needs a gateway endpoint; fix: {self._vpc.node.id}.add_gateway_endpoint('S3', "
            "service=ec2.GatewayVpcEndpointAwsService.S3), which is free, or select private subnets"
        ]


@jsii.implements(IValidation)
class ReachesInternet:
    """Rejects a selection of only public and isolated subnets if, at the end of the synthesis, none of the isolated
    ones has a default route.

    Imported VPCs are not checked, because their routes are not known.
    """

    def __init__(self, vpc: ec2.IVpc, subnets: Sequence[ec2.ISubnet]) -> None:
        self._vpc, self._subnets = vpc, subnets

    def validate(self) -> list[str]:
        """One sentence for each problem."""
        if not isinstance(self._vpc, ec2.Vpc) or not all(_has_no_egress(self._vpc, subnet) for subnet in self._subnets):
            return []
        if _have_default_route(self._vpc, self._subnets):
            return []
        paths = ", ".join(subnet.node.path for subnet in self._subnets)
        return [
            f"image: got NodeImage.install_on() in {paths}, from which nodes do not reach the internet; allowed: "
            "install_on() in a subnet with egress; fix: select private subnets with a NAT gateway, or choose "
            "NodeImage.custom() with an image that has the software"
        ]


def _have_default_route(vpc: ec2.Vpc, subnets: Sequence[ec2.ISubnet]) -> bool:
    """Whether the VPC's stack has a default route for one of the subnets that are not public."""
    stack = Stack.of(vpc)
    tables = [
        stack.resolve(subnet.route_table.route_table_id)
        for subnet in subnets
        if not isinstance(subnet, ec2.PublicSubnet)
    ]
    if not tables:
        return False
    routes = [child for child in stack.node.find_all() if isinstance(child, ec2.CfnRoute)]
    defaults = [route for route in routes if route.destination_cidr_block == "0.0.0.0/0"]
    return any(stack.resolve(route.route_table_id) in tables for route in defaults)


def _has_no_egress(vpc: ec2.Vpc, subnet: ec2.ISubnet) -> bool:
    if isinstance(subnet, ec2.PublicSubnet):
        return True
    return any(subnet.node.path == isolated.node.path for isolated in vpc.isolated_subnets)


def _endpoints(vpc: ec2.Vpc) -> Iterable[IConstruct]:
    """The endpoints in the VPC's stack. Those that are children of the VPC come first, because a search of the whole
    stack takes longer."""
    yield from (
        child.node.default_child or child for child in vpc.node.children if isinstance(child, ec2.GatewayVpcEndpoint)
    )
    yield from (child for child in Stack.of(vpc).node.find_all() if isinstance(child, ec2.CfnVPCEndpoint))


def _is_for_s3(endpoint: IConstruct, vpc: ec2.Vpc) -> bool:
    stack = Stack.of(vpc)
    if not isinstance(endpoint, ec2.CfnVPCEndpoint) or stack.resolve(endpoint.vpc_id) != stack.resolve(vpc.vpc_id):
        return False
    return ".s3" in json.dumps(stack.resolve(endpoint.service_name))

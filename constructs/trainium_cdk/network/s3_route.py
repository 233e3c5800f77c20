"""Checks that nodes reach S3 from their subnet."""

import json
from collections.abc import Iterable, Sequence

import jsii
from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from constructs import IConstruct, IValidation


@jsii.implements(IValidation)
class ReachesS3:
    """Rejects public and isolated subnets of the app's VPC if, at the end of the synthesis, it has no gateway endpoint
    for S3.

    Nodes have no public address, which EC2 does not assign to instances with several network interfaces. Imported VPCs
    are not checked, because their routes are not known.
    """

    def __init__(self, vpc: ec2.IVpc, subnets: Sequence[ec2.ISubnet]) -> None:
        self._vpc, self._subnets = vpc, subnets

    def validate(self) -> list[str]:
        """One sentence for each problem."""
        if not isinstance(self._vpc, ec2.Vpc) or not all(self._has_no_way_out(one) for one in self._subnets):
            return []
        if any(map(_is_for_s3, _endpoints(self._vpc))):
            return []
        paths = ", ".join(one.node.path for one in self._subnets)
        return [
            f"vpc_subnets: got {paths}; allowed: a subnet that reaches S3, for which a public or isolated subnet "
            f"needs a gateway endpoint; fix: {self._vpc.node.id}.add_gateway_endpoint('S3', "
            "service=ec2.GatewayVpcEndpointAwsService.S3), which is free, or select private subnets"
        ]

    def _has_no_way_out(self, subnet: ec2.ISubnet) -> bool:
        if isinstance(subnet, ec2.PublicSubnet):
            return True
        return any(subnet.node.path == one.node.path for one in self._vpc.isolated_subnets)


def _endpoints(vpc: ec2.Vpc) -> Iterable[IConstruct]:
    """The VPC's own children first, where most are: the whole stack is large."""
    yield from (one.node.default_child or one for one in vpc.node.children if isinstance(one, ec2.GatewayVpcEndpoint))
    yield from (one for one in Stack.of(vpc).node.find_all() if isinstance(one, ec2.CfnVPCEndpoint))


def _is_for_s3(endpoint: IConstruct) -> bool:
    if not isinstance(endpoint, ec2.CfnVPCEndpoint):
        return False
    return ".s3" in json.dumps(Stack.of(endpoint).resolve(endpoint.service_name))

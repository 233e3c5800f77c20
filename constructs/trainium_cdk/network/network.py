"""The network of the nodes: a private subnet in one Availability Zone, with a choice of egress."""

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aws_cdk import Annotations, CfnResource, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from trainium_cdk.checks import check, check_bucket_name, check_known, form, is_pending, refuse
from trainium_cdk.justification import justify
from trainium_cdk.network.security_group import HTTPS
from trainium_cdk.pilot.sleep_switch import SleepSwitch, check_sleep
from trainium_core.catalog.catalog import builtin_catalog
from trainium_core.naming import SESSION_SERVICES
from trainium_core.plan.rules.network import overlaps_docker
from trainium_core.plan.settings.network import DEFAULT_EGRESS, Egress, NetworkSettings
from trainium_core.plan.settings_by_key import SETTINGS

_PUBLIC_SUBNET_PREFIX = 28

_PACKAGES = "al2023-repos-{region}-de612dc2"
"""AWS's bucket with the packages of Amazon Linux 2023 (AL2023 User Guide, repositories)."""

_WITH_POLICIES = ("ssm",)
"""Services whose endpoints get a policy (Systems Manager User Guide). No source was found that those of ssmmessages
support one."""


class ClusterNetwork(Construct):
    """A VPC of one Availability Zone with one private subnet for nodes; EFA does not cross zones.

    Nodes reach S3 over a gateway endpoint, which is free. Without a NAT gateway, the endpoint allows only buckets of
    the account, those in `s3_buckets` (unless it is None), and reading the packages of Amazon Linux, so that jobs
    cannot copy data to other buckets. `vpc` and `subnet` are the CDK objects.

    Example:

        network = ClusterNetwork(stack, "Network", zone_id="usw2-az4", egress="nat-gateway")
        existing = ClusterNetwork.from_cluster_network_attributes(
            stack, "Existing", vpc_id="vpc-0123456789abcdef0", subnet_id="subnet-0123456789abcdef0"
        )
    """

    vpc: ec2.IVpc
    subnet: ec2.ISubnet

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        zone_id: str,
        cidr: str = NetworkSettings.vpc_cidr,
        egress: Egress = DEFAULT_EGRESS,
        s3_buckets: Sequence[str] | None = (),
        endpoint_services: Sequence[str] = (),
        sleep: SleepSwitch | None = None,
    ) -> None:
        """
        Args:
            zone_id: Availability Zone ID, such as usw2-az4. A zone name can mean different zones in different accounts.
            cidr: CIDR block of the VPC; nodes get its lower half. Default: 10.42.0.0/16.
            egress: `vpc-endpoints` for S3, Session Manager and `endpoint_services`, `nat-gateway` for the internet,
                `none` for S3 only. The first two are billed per hour and GB. Default: nat-gateway.
            s3_buckets: Names of buckets in other accounts that nodes reach without a NAT gateway, in addition to all
                buckets of this account; None: every bucket. Default: no others. With a NAT gateway, nodes reach every
                bucket.
            endpoint_services: Further AWS services, such as `pcs`, that get an interface endpoint if `egress` is
                `vpc-endpoints`. Default: none.
            sleep: The switch that, while the cluster sleeps, removes what is billed per hour. Default: none.

        Raises:
            PropsError: The zone is given by its name, is in another region or is a CDK token, the CIDR block is invalid
                or a CDK token, the egress or the name of a bucket is invalid, or the switch is in another stack.
        """
        super().__init__(scope, construct_id)
        _check_zone(self, zone_id)
        check_known(self, "cidr", cidr, why="the subnets are derived from it")
        check(self, form("vpc_cidr", cidr, field="cidr"), form("egress", egress))
        if overlaps_docker(cidr):
            allowed = SETTINGS["vpc_cidr"].form.allowed
            raise refuse(
                self, "cidr", cidr, allowed=allowed, fix="choose another block: 172.17.0.0/16 is Docker's bridge"
            )
        for name in s3_buckets or ():
            check_bucket_name(self, "s3_buckets", name)
        check_sleep(self, sleep)
        with_nat = egress == "nat-gateway"
        private = ec2.SubnetType.PRIVATE_WITH_EGRESS if with_nat else ec2.SubnetType.PRIVATE_ISOLATED
        subnets = [
            ec2.SubnetConfiguration(
                name="Nodes", subnet_type=private, cidr_mask=ipaddress.IPv4Network(cidr).prefixlen + 1
            )
        ]
        if with_nat:
            public = ec2.SubnetType.PUBLIC
            subnets.append(
                ec2.SubnetConfiguration(
                    name="Nat", subnet_type=public, cidr_mask=_PUBLIC_SUBNET_PREFIX, map_public_ip_on_launch=False
                )
            )
        self.vpc = vpc = ec2.Vpc(
            self,
            "Vpc",
            ip_addresses=ec2.IpAddresses.cidr(cidr),
            max_azs=1,
            nat_gateways=1 if with_nat else 0,
            subnet_configuration=subnets,
            # Nothing uses the default group, and restricting it would need a Lambda function of the CDK.
            restrict_default_security_group=False,
        )
        self.subnet = vpc.select_subnets(subnet_group_name="Nodes").subnets[0]
        for subnet in [*vpc.isolated_subnets, *vpc.private_subnets, *vpc.public_subnets]:
            _place_in_zone(subnet, zone_id)
        s3 = vpc.add_gateway_endpoint("S3", service=ec2.GatewayVpcEndpointAwsService.S3)
        if not with_nat and s3_buckets is not None:
            _restrict_s3(s3, s3_buckets)
        if egress == "vpc-endpoints":
            self._add_endpoints(vpc, cidr, [*SESSION_SERVICES, *endpoint_services])
        if sleep is not None:
            for resource in _billed_by_the_hour(vpc):
                sleep.add_when_awake(resource)
        justify(vpc, cdk_nag={"VPC7": "a pilot's private network; vpc.add_flow_log() adds flow logs, billed by the GB"})

    @staticmethod
    def from_cluster_network_attributes(
        scope: Construct, construct_id: str, *, vpc_id: str, subnet_id: str, route_table_id: str | None = None
    ) -> "ClusterNetwork":
        """Import a VPC and a subnet. If the route table is given, an S3 gateway endpoint is added to it.

        Args:
            vpc_id: ID of the VPC, such as vpc-0123456789abcdef0.
            subnet_id: ID of the nodes' subnet, whose zone must offer the instance type.
            route_table_id: ID of the subnet's route table. Default: no endpoint is added, and the subnet must
                already reach S3.

        Raises:
            PropsError: An ID is invalid.
        """
        return _ImportedNetwork(scope, construct_id, vpc_id=vpc_id, subnet_id=subnet_id, route_table_id=route_table_id)

    def _add_endpoints(self, vpc: ec2.Vpc, cidr: str, services: Sequence[str]) -> None:
        group = ec2.SecurityGroup(
            self, "Endpoints", vpc=vpc, allow_all_outbound=False, description="AWS endpoints: HTTPS from the VPC"
        )
        group.add_ingress_rule(ec2.Peer.ipv4(cidr), ec2.Port.tcp(HTTPS), "HTTPS from the VPC")
        for service in dict.fromkeys(services):
            endpoint = vpc.add_interface_endpoint(
                service.capitalize(),
                service=ec2.InterfaceVpcEndpointAwsService(service),
                subnets=ec2.SubnetSelection(subnets=[self.subnet]),
                security_groups=[group],
                open=False,
            )
            if service in _WITH_POLICIES:
                account = {"aws:PrincipalAccount": Stack.of(self).account}
                endpoint.add_to_policy(_anyone(["*"], ["*"], conditions={"StringEquals": account}))


class _ImportedNetwork(ClusterNetwork):
    def __init__(
        self, scope: Construct, construct_id: str, *, vpc_id: str, subnet_id: str, route_table_id: str | None
    ) -> None:
        Construct.__init__(self, scope, construct_id)
        check(self, form("vpc_id", vpc_id), form("subnet_id", subnet_id), form("route_table_id", route_table_id))
        # As a private subnet, the VPC's selections include it: whether and how it reaches S3 is unknown.
        self.vpc = ec2.Vpc.from_vpc_attributes(
            self,
            "Vpc",
            vpc_id=vpc_id,
            availability_zones=["dummy"],  # unknown: a placeholder, as in the CDK's lookups
            private_subnet_ids=[subnet_id],
            private_subnet_route_table_ids=None if route_table_id is None else [route_table_id],
        )
        (self.subnet,) = self.vpc.private_subnets
        # The CDK adds this warning when the route table of the subnet is read but was not given.
        Annotations.of(self.subnet).acknowledge_warning("@aws-cdk/aws-ec2:noSubnetRouteTableId")
        if route_table_id is not None:
            self.vpc.add_gateway_endpoint(
                "S3",
                service=ec2.GatewayVpcEndpointAwsService.S3,
                subnets=[ec2.SubnetSelection(subnets=[self.subnet])],
            )


def _restrict_s3(endpoint: ec2.GatewayVpcEndpoint, buckets: Sequence[str]) -> None:
    """Restrict an endpoint to the buckets of this account, the named ones, and packages of Amazon Linux."""
    stack = Stack.of(endpoint)
    account = {"aws:ResourceAccount": stack.account}
    endpoint.add_to_policy(_anyone(["s3:*"], ["*"], conditions={"StringEquals": account}))
    packages = stack.format_arn(
        service="s3", region="", account="", resource=_PACKAGES.format(region=stack.region), resource_name="*"
    )
    endpoint.add_to_policy(_anyone(["s3:GetObject"], [packages]))
    if buckets:
        arns = [stack.format_arn(service="s3", region="", account="", resource=name) for name in buckets]
        endpoint.add_to_policy(_anyone(["s3:*"], [each for arn in arns for each in (arn, f"{arn}/*")]))


def _anyone(
    actions: Sequence[str], resources: Sequence[str], *, conditions: Mapping[str, Any] | None = None
) -> iam.PolicyStatement:
    """A statement of an endpoint policy, which restricts the permissions of principals and grants none."""
    anyone: Any = iam.AnyPrincipal()  # in jsii a parameter has another name than in the interface
    return iam.PolicyStatement(
        actions=list(actions), resources=list(resources), principals=[anyone], conditions=conditions
    )


def _check_zone(network: Construct, zone_id: str) -> None:
    if is_pending(zone_id):
        return
    check_known(network, "zone_id", zone_id, why="it is compared with the zones that offer an instance type")
    check(network, form("availability_zone_id", zone_id, field="zone_id"))
    region = Stack.of(network).region
    zones = sorted({zone for known in builtin_catalog().values() for zone in known.zones.get(region, ())})
    if zones and zone_id.partition("-")[0] != zones[0].partition("-")[0]:
        allowed = f"a zone of {region}, the region of the stack, such as {' or '.join(zones)}"
        raise refuse(network, "zone_id", zone_id, allowed=allowed, fix="choose one, or another region for the stack")


def _billed_by_the_hour(vpc: ec2.Vpc) -> Iterator[CfnResource]:
    """The egress that is billed even without nodes, with its routes."""
    for child in vpc.node.find_all():
        interface = isinstance(child, ec2.CfnVPCEndpoint) and child.vpc_endpoint_type == "Interface"
        to_nat = isinstance(child, ec2.CfnRoute) and child.nat_gateway_id is not None
        if isinstance(child, ec2.CfnNatGateway | ec2.CfnEIP) or interface or to_nat:
            assert isinstance(child, CfnResource)
            yield child


def _place_in_zone(subnet: ec2.ISubnet, zone_id: str) -> None:
    # The L2 subnet supports only zone names.
    resource = subnet.node.default_child
    assert isinstance(resource, ec2.CfnSubnet)
    resource.add_property_deletion_override("AvailabilityZone")
    resource.availability_zone_id = zone_id

"""The network that a plan asks for: the user's own, or a new one."""

from collections.abc import Sequence
from typing import Literal

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from trainium_cdk.network import ClusterNetwork, ExistingNetwork
from trainium_cdk.security_group import HTTP, HTTPS, EfaSecurityGroup
from trainium_cdk.sleep_switch import SleepSwitch
from trainium_core.plan import Plan
from trainium_core.plan.settings.network import Egress


def plan_network(
    scope: Construct,
    construct_id: str,
    plan: Plan,
    *,
    egress: Egress | Literal["existing"],
    sleep: SleepSwitch | None = None,
) -> ClusterNetwork | ExistingNetwork:
    """The VPC and subnet of trn:vpc_id, else new ones with this way out, as long as the cluster is awake."""
    wanted = plan.network
    if wanted.vpc_id is not None and wanted.subnet_id is not None:
        return ExistingNetwork(
            scope,
            construct_id,
            vpc_id=wanted.vpc_id,
            subnet_id=wanted.subnet_id,
            route_table_id=wanted.route_table_id,
        )
    assert plan.zone_id is not None
    assert egress != "existing"
    return ClusterNetwork(scope, construct_id, zone_id=plan.zone_id, cidr=wanted.vpc_cidr, egress=egress, sleep=sleep)


def plan_security_group(
    scope: Construct,
    construct_id: str,
    plan: Plan,
    *,
    vpc: ec2.IVpc,
    egress: Egress | Literal["existing"],
    downloads: bool = False,
) -> EfaSecurityGroup:
    """The security group of what runs in the network of `plan_network`.

    Port 80 is open to a NAT gateway, and in a VPC of the user's own with `downloads`: packages of Ubuntu come by HTTP.
    """
    own = plan.network.vpc_id is not None
    ports: Sequence[int] = (HTTP, HTTPS) if (downloads if own else egress == "nat-gateway") else (HTTPS,)
    return EfaSecurityGroup(
        scope, construct_id, vpc=vpc, outbound_tcp_ports=ports, dns_servers=plan.network.dns_servers
    )

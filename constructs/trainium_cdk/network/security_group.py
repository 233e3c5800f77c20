"""The security group for EFA."""

from collections.abc import Sequence

from aws_cdk import Stack, Token
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from trainium_cdk.checks import check, check_same_region, form, is_pending, refuse
from trainium_cdk.network.same_vpc import known_vpc, refuse_another_vpc
from trainium_core.facts import facts

HTTP, HTTPS = 80, 443
_DNS = 53
_ALL_PROTOCOLS = "-1"
LOOPBACK = ec2.Peer.ipv4("127.0.0.1/32")
"""An egress rule to this address allows no traffic to other hosts. Without any egress rule, EC2 adds one that allows
all traffic. The CDK has a similar rule, but drops it when a rule to another group is added.
"""


class EfaSecurityGroup(ec2.SecurityGroup):
    """A security group that allows all traffic within itself, and outbound traffic to TCP ports and DNS servers.

    EFA needs an ingress and an egress rule that refer to the group itself. An egress rule to 0.0.0.0/0 is not enough,
    and with `allow_all_outbound=True` the CDK warns and adds no other egress rule. The Amazon DNS server,
    DHCP, the instance metadata service and the Amazon Time Sync Service need no rules, because security groups do not
    filter them (Amazon VPC User Guide, security groups).

    Example:

        group = EfaSecurityGroup(stack, "Group", vpc=vpc, outbound_tcp_ports=[443])
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        outbound_tcp_ports: Sequence[int] = (HTTPS,),
        dns_servers: Sequence[str] = (),
    ) -> None:
        """
        Args:
            vpc: VPC of the group.
            outbound_tcp_ports: TCP ports to open to any IPv4 address. Default: 443, for AWS endpoints and S3.
            dns_servers: IPv4 addresses of resolvers to open port 53 to, in addition to the Amazon DNS server. Default:
                none.

        Raises:
            PropsError: A TCP port or an address is invalid.
        """
        super().__init__(
            scope,
            construct_id,
            vpc=vpc,
            allow_all_outbound=False,
            description="Trainium nodes: EFA among themselves, nothing in from elsewhere",
        )
        for port in outbound_tcp_ports:
            if not Token.is_unresolved(port) and not 1 <= port <= 65535:
                fix = "pass a number in this range"
                raise refuse(self, "outbound_tcp_ports", port, allowed="a TCP port, 1 to 65535", fix=fix)
        check(self, form("dns_servers", tuple(dns_servers)))
        self.add_ingress_rule(self, ec2.Port.all_traffic(), "EFA and all else from the other nodes")
        self.add_egress_rule(self, ec2.Port.all_traffic(), "EFA and all else to the other nodes")
        if not outbound_tcp_ports and not dns_servers:
            self.add_egress_rule(LOOPBACK, ec2.Port.all_traffic(), "nowhere else")
        for port in outbound_tcp_ports:
            self.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(port), f"out to TCP {port}")
        for address in dns_servers:
            if is_pending(address):
                continue  # ec2.Peer.ipv4 would refuse the placeholder
            for port in (ec2.Port.udp(_DNS), ec2.Port.tcp(_DNS)):
                self.add_egress_rule(ec2.Peer.ipv4(f"{address}/32"), port, "DNS")


def may_carry_efa(group: ec2.ISecurityGroup) -> bool:
    """Whether a group allows all traffic from and to itself, as EFA needs. True for imported groups, whose rules are
    unknown."""
    if isinstance(group, EfaSecurityGroup) or not isinstance(group, ec2.SecurityGroup):
        return True
    stack = Stack.of(group)
    own = stack.resolve(group.security_group_id)
    rules = group.node.find_all()
    inward = [rule for rule in rules if isinstance(rule, ec2.CfnSecurityGroupIngress)]
    outward = [rule for rule in rules if isinstance(rule, ec2.CfnSecurityGroupEgress)]
    sources = [rule.source_security_group_id for rule in inward if rule.ip_protocol == _ALL_PROTOCOLS]
    destinations = [rule.destination_security_group_id for rule in outward if rule.ip_protocol == _ALL_PROTOCOLS]
    return own in map(stack.resolve, sources) and own in map(stack.resolve, destinations)


def check_groups(construct: Construct, groups: Sequence[ec2.ISecurityGroup], *, vpc: ec2.IVpc | None) -> None:
    """Raise PropsError for groups that are known to be in another region or VPC, for a repeated group, and for more
    groups than an interface supports.

    Args:
        vpc: VPC of the nodes, whose fleet adds its own group. None: the groups may be in any one VPC, and no group is
            added.
    """
    for group in groups:
        check_same_region(construct, "security_groups", group, what="a group")
        if vpc is not None:
            refuse_another_vpc(construct, "security_groups", group, group_vpc_id(group), vpc)
    paths = [group.node.path for group in groups]
    most = facts()["security_group"]["most_of_an_interface"] - (vpc is not None)
    if len(paths) > most or len(set(paths)) < len(paths):
        allowed = f"up to {most} groups, each once"
        raise refuse(construct, "security_groups", ", ".join(paths), allowed=allowed, fix="remove some of them")
    vpc_ids = map(group_vpc_id, groups)
    if vpc is None and len({known_vpc(Stack.of(construct), vpc_id) for vpc_id in vpc_ids if vpc_id} - {None}) > 1:
        allowed = "groups of one VPC"
        raise refuse(
            construct, "security_groups", ", ".join(paths), allowed=allowed, fix="create all with the same vpc"
        )


def group_vpc_id(group: ec2.ISecurityGroup) -> str | None:
    """The VPC of a group; None for an imported group."""
    resource = group.node.default_child
    return resource.vpc_id if isinstance(resource, ec2.CfnSecurityGroup) else None

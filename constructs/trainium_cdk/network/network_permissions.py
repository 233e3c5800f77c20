"""The permissions that SageMaker needs to create network interfaces in a VPC."""

from collections.abc import Sequence

from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam

from trainium_cdk.justification import justify_wildcard
from trainium_cdk.service_role import allow

_ON_AN_INTERFACE_OF_THE_SUBNET = (
    "ec2:CreateNetworkInterfacePermission",
    "ec2:DeleteNetworkInterface",
    "ec2:DeleteNetworkInterfacePermission",
)
_READ_ACTIONS = (
    "ec2:DescribeDhcpOptions",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcs",
)


def allow_interfaces(
    role: iam.IRole,
    *,
    subnet: ec2.ISubnet,
    security_groups: Sequence[ec2.ISecurityGroup],
) -> None:
    """Allow a role to create network interfaces only in one subnet and with the given security groups.

    A network interface permission lets another account attach the interface. Therefore the role can create and
    delete such permissions, and delete interfaces, only in this subnet. Source: SageMaker developer guide, roles of
    training jobs in a VPC; Service Authorization Reference for the condition.
    """
    stack = Stack.of(role)

    def arn(resource: str, name: str) -> str:
        return stack.format_arn(service="ec2", resource=resource, resource_name=name)

    interfaces, subnet_arn = arn("network-interface", "*"), arn("subnet", subnet.subnet_id)
    own = [subnet_arn, *(arn("security-group", group.security_group_id) for group in security_groups)]
    in_the_subnet = {"ArnEquals": {"ec2:Subnet": subnet_arn}}
    for actions, resources, conditions in (
        (["ec2:CreateNetworkInterface"], [interfaces, *own], None),
        ([*_ON_AN_INTERFACE_OF_THE_SUBNET], [interfaces], in_the_subnet),
        ([*_READ_ACTIONS], ["*"], None),
    ):
        allow(role, actions, resources, conditions)
    justify_wildcard(role, interfaces, "the ids of the interfaces are not known at synthesis")
    justify_wildcard(
        role, "*", "read-only actions without resource-level permissions (Service Authorization Reference)"
    )

"""The subnets that the user selects for nodes or training jobs."""

import re
from collections.abc import Sequence
from typing import Any

from aws_cdk import Stack, Token
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from trainium_cdk.cdk_types import Subnet
from trainium_cdk.checks import check_same_region, first_line, is_pending, refuse
from trainium_cdk.network.same_vpc import refuse_another_vpc
from trainium_core.catalog.file import ZONE_ID

_FIELDS = ("availability_zones", "one_per_az", "subnet_filters", "subnet_group_name", "subnet_type", "subnets")


def candidate_subnets(
    construct: Construct, vpc: ec2.IVpc, selection: ec2.SubnetSelection | None
) -> Sequence[ec2.ISubnet]:
    """The selected subnets, at least one.

    Raises:
        PropsError: No subnet is selected, a subnet belongs to another VPC, zones are given by ID, or `check_vpc`
            refuses the VPC.
    """
    check_vpc(construct, vpc)
    selection = selection or ec2.SubnetSelection()
    _refuse_zone_ids(construct, selection)
    for subnet in selection.subnets or ():
        _refuse_another_vpc(construct, "vpc_subnets", vpc, subnet)
    if any(map(is_pending, [selection.subnet_group_name, *(selection.availability_zones or ())])):
        selection = ec2.SubnetSelection(subnets=_any_subnet(vpc))
    fields: dict[str, Any] = {name: getattr(selection, name) for name in _FIELDS}
    if selection.subnets and not any(value for name, value in fields.items() if name != "subnets"):
        # The CDK would read the zones of the subnets, which imported subnets may not have.
        return selection.subnets
    try:
        selected = vpc.select_subnets(**{name: value for name, value in fields.items() if value is not None})
    except RuntimeError as error:
        allowed = "a selection of subnets that the VPC has"
        fix = f"correct the selection; the CDK reports: {first_line(error)}"
        raise refuse(construct, "vpc_subnets", _shown(fields), allowed=allowed, fix=fix) from None
    if selected.is_pending_lookup:
        # The placeholder for a VPC lookup: after the lookup, the CDK CLI synthesises again.
        return [*selected.subnets, *vpc.private_subnets][:1]
    if selected.subnets:
        return selected.subnets
    zones = vpc.availability_zones
    if any(map(is_placeholder, zones)):
        # The CDK CLI has yet to look up the zones of the account, or this is a unit test, where nothing is looked up.
        return _any_subnet(vpc)
    allowed = f"a selection with a subnet of the VPC, whose zones are {', '.join(zones)}"
    fix = "select a subnet that the VPC has, or add one in a zone that offers the type"
    if any(map(Token.is_unresolved, zones)):
        allowed = "a selection without availability_zones: the zones of the VPC are unknown without an account"
        region = Stack.of(construct).region
        fix = f"set env=Environment(account=..., region={region!r}) on the stack, or set the VPC's availability_zones"
    raise refuse(construct, "vpc_subnets", _shown(fields), allowed=allowed, fix=fix)


def _any_subnet(vpc: ec2.IVpc) -> list[ec2.ISubnet]:
    return [*vpc.private_subnets, *vpc.public_subnets, *vpc.isolated_subnets][:1]


def is_placeholder(value: str) -> bool:
    """Whether a zone or CIDR block is a placeholder for a lookup of the CDK CLI.

    Source: aws-cdk-lib 2.275, DUMMY_VPC_PROPS of Vpc and Stack.availabilityZones.
    """
    return value.startswith("dummy") or value == "1.2.3.4/5"


def _refuse_zone_ids(construct: Construct, selection: ec2.SubnetSelection) -> None:
    for zone in selection.availability_zones or ():
        if re.fullmatch(ZONE_ID, zone):
            raise refuse(
                construct,
                "vpc_subnets",
                zone,
                allowed="names of Availability Zones in availability_zones, such as us-west-2b",
                fix="pass the name that your account has for this zone ID, or select the subnet itself: subnets=[...]",
            )


def check_vpc(construct: Construct, vpc: ec2.IVpc) -> None:
    """Raise PropsError if a VPC is known to be in another region or to have no DNS support."""
    check_same_region(construct, "vpc", vpc, what="a VPC")
    if isinstance(vpc, ec2.Vpc) and not vpc.dns_support_enabled:
        allowed = "a VPC with DNS support, which nodes need to resolve AWS endpoints and file systems"
        raise refuse(construct, "vpc", vpc, allowed=allowed, fix="remove its enable_dns_support=False")


def check_subnet(construct: Construct, vpc: ec2.IVpc, subnet: Subnet) -> None:
    """Raise PropsError if `check_vpc` refuses the VPC, or if the subnet is known to belong to another VPC."""
    check_vpc(construct, vpc)
    _refuse_another_vpc(construct, "subnet", vpc, subnet)


def _refuse_another_vpc(construct: Construct, parameter: str, vpc: ec2.IVpc, subnet: Subnet) -> None:
    resource = subnet.node.default_child
    vpc_id = resource.vpc_id if isinstance(resource, ec2.CfnSubnet) else None
    refuse_another_vpc(
        construct, parameter, subnet, vpc_id, vpc, fix="pass a subnet of that VPC, or the subnet's VPC as vpc"
    )


def _shown(fields: dict[str, Any]) -> str:
    paths = {"subnets": [subnet.node.path for subnet in fields["subnets"] or ()] or None}
    shown = {name: value for name, value in {**fields, **paths}.items() if value is not None}
    return ", ".join(f"{name}={value}" for name, value in shown.items()) or "the default"

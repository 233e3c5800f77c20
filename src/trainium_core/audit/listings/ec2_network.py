"""VPCs and their resources, and Elastic IP addresses.

Default VPCs are not listed. Neither are the resources that AWS creates and deletes with a VPC: its main route table,
default security group and default network ACL.
"""

from decimal import Decimal

from trainium_core.audit.listings.ec2 import ec2_resource
from trainium_core.audit.listings.listing import Entry, Listing, Location
from trainium_core.audit.resource import FREE, Charge, ChargedItem, Resource


@Listing("VPC", "AWS::EC2::VPC", arn_type="ec2:vpc", permission="ec2:DescribeVpcs")
def _vpcs(entry: Entry, _location: Location) -> Resource | None:
    if entry.get("IsDefault"):
        return None
    return ec2_resource(entry, entry["VpcId"], state=entry["State"], detail=entry["CidrBlock"])


@Listing("subnet", "AWS::EC2::Subnet", arn_type="ec2:subnet", permission="ec2:DescribeSubnets")
def _subnets(entry: Entry, _location: Location) -> Resource:
    parents = (entry["VpcId"],)
    return ec2_resource(
        entry,
        entry["SubnetId"],
        parents=parents,
        state=entry["State"],
        detail=entry["CidrBlock"],
    )


@Listing(
    "route table",
    "AWS::EC2::RouteTable",
    arn_type="ec2:route-table",
    permission="ec2:DescribeRouteTables",
    in_estimates=False,
)
def _route_tables(entry: Entry, _location: Location) -> Resource | None:
    if any(association.get("Main") for association in entry.get("Associations", ())):
        return None
    return ec2_resource(entry, entry["RouteTableId"], parents=(entry["VpcId"],))


@Listing(
    "network ACL",
    "AWS::EC2::NetworkAcl",
    arn_type="ec2:network-acl",
    permission="ec2:DescribeNetworkAcls",
    in_estimates=False,
)
def _network_acls(entry: Entry, _location: Location) -> Resource | None:
    if entry.get("IsDefault"):
        return None
    return ec2_resource(entry, entry["NetworkAclId"], parents=(entry["VpcId"],))


@Listing(
    "security group", "AWS::EC2::SecurityGroup", arn_type="ec2:security-group", permission="ec2:DescribeSecurityGroups"
)
def _security_groups(entry: Entry, _location: Location) -> Resource | None:
    if entry["GroupName"] == "default":
        return None
    return ec2_resource(
        entry,
        entry["GroupId"],
        other_ids=(entry["GroupName"],),
        parents=(entry.get("VpcId"),),
        detail=entry["GroupName"],
    )


@Listing(
    "internet gateway",
    "AWS::EC2::InternetGateway",
    arn_type="ec2:internet-gateway",
    permission="ec2:DescribeInternetGateways",
    in_estimates=False,
)
def _internet_gateways(entry: Entry, _location: Location) -> Resource:
    parents = tuple(attachment["VpcId"] for attachment in entry.get("Attachments", ()))
    return ec2_resource(entry, entry["InternetGatewayId"], parents=parents)


@Listing("NAT gateway", "AWS::EC2::NatGateway", arn_type="ec2:natgateway", permission="ec2:DescribeNatGateways")
def _nat_gateways(entry: Entry, _location: Location) -> Resource | None:
    if entry["State"] in ("deleted", "failed"):
        return None
    return ec2_resource(
        entry,
        entry["NatGatewayId"],
        parents=(entry["VpcId"],),
        state=entry["State"],
        created=entry.get("CreateTime"),
        charge=_hourly("nat-gateway"),
    )


@Listing("Elastic IP address", "AWS::EC2::EIP", arn_type="ec2:elastic-ip", permission="ec2:DescribeAddresses")
def _addresses(entry: Entry, _location: Location) -> Resource:
    return ec2_resource(
        entry,
        entry["AllocationId"],
        other_ids=(entry["PublicIp"],),
        parents=(entry.get("NetworkInterfaceId"), entry.get("InstanceId")),
        detail=entry["PublicIp"],
        charge=_hourly("public-ipv4"),
    )


@Listing("VPC endpoint", "AWS::EC2::VPCEndpoint", arn_type="ec2:vpc-endpoint", permission="ec2:DescribeVpcEndpoints")
def _endpoints(entry: Entry, _location: Location) -> Resource | None:
    state = entry["State"].lower()
    if state == "deleted":
        return None
    billed = entry["VpcEndpointType"] == "Interface"
    return ec2_resource(
        entry,
        entry["VpcEndpointId"],
        parents=(entry["VpcId"],),
        state=state,
        detail=f"{entry['VpcEndpointType'].lower()} endpoint of {entry['ServiceName']}",
        created=entry.get("CreationTimestamp"),
        charge=_hourly("interface-endpoint", len(entry.get("SubnetIds", ()))) if billed else FREE,
    )


@Listing(
    "network interface",
    "AWS::EC2::NetworkInterface",
    arn_type="ec2:network-interface",
    permission="ec2:DescribeNetworkInterfaces",
)
def _interfaces(entry: Entry, _location: Location) -> Resource:
    groups = tuple(group["GroupId"] for group in entry.get("Groups", ()))
    return ec2_resource(
        {"Tags": entry.get("TagSet") or entry.get("Tags")},
        entry["NetworkInterfaceId"],
        parents=(entry.get("VpcId"), *groups, entry.get("Attachment", {}).get("InstanceId")),
        state=entry.get("Status", ""),
        detail=entry.get("Description", ""),
    )


def _hourly(product: str, quantity: int = 1) -> Charge:
    return Charge(items=(ChargedItem(product=product, quantity=Decimal(quantity)),))


NETWORK = (
    _nat_gateways,
    _addresses,
    _endpoints,
    _interfaces,
    _internet_gateways,
    _security_groups,
    _network_acls,
    _route_tables,
    _subnets,
    _vpcs,
)

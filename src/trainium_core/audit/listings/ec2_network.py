"""The resources of a VPC, except those that are deleted with it: main route table, default group and default ACL."""

from decimal import Decimal

from trainium_core.audit.listings.ec2 import ec2_resource, of_ec2
from trainium_core.audit.listings.listing import Entry, Location
from trainium_core.audit.resource import FREE, Charge, ChargedItem, Resource


def _vpc(entry: Entry, location: Location) -> Resource | None:
    if entry.get("IsDefault"):
        return None
    return ec2_resource(
        entry, location, arn_type="vpc", resource_id=entry["VpcId"], state=entry["State"], detail=entry["CidrBlock"]
    )


def _subnet(entry: Entry, location: Location) -> Resource:
    parents = (entry["VpcId"],)
    return ec2_resource(
        entry,
        location,
        arn_type="subnet",
        resource_id=entry["SubnetId"],
        parents=parents,
        state=entry["State"],
        detail=entry["CidrBlock"],
    )


def _route_table(entry: Entry, location: Location) -> Resource | None:
    if any(association.get("Main") for association in entry.get("Associations", ())):
        return None
    parents = (entry["VpcId"],)
    return ec2_resource(entry, location, arn_type="route-table", resource_id=entry["RouteTableId"], parents=parents)


def _network_acl(entry: Entry, location: Location) -> Resource | None:
    if entry.get("IsDefault"):
        return None
    parents = (entry["VpcId"],)
    return ec2_resource(entry, location, arn_type="network-acl", resource_id=entry["NetworkAclId"], parents=parents)


def _security_group(entry: Entry, location: Location) -> Resource | None:
    if entry["GroupName"] == "default":
        return None
    return ec2_resource(
        entry,
        location,
        arn_type="security-group",
        resource_id=entry["GroupId"],
        other_ids=(entry["GroupName"],),
        parents=(entry.get("VpcId"),),
        detail=entry["GroupName"],
    )


def _internet_gateway(entry: Entry, location: Location) -> Resource:
    parents = tuple(attachment["VpcId"] for attachment in entry.get("Attachments", ()))
    return ec2_resource(
        entry, location, arn_type="internet-gateway", resource_id=entry["InternetGatewayId"], parents=parents
    )


def _nat_gateway(entry: Entry, location: Location) -> Resource | None:
    if entry["State"] in ("deleted", "failed"):
        return None
    return ec2_resource(
        entry,
        location,
        arn_type="natgateway",
        resource_id=entry["NatGatewayId"],
        parents=(entry["VpcId"],),
        state=entry["State"],
        created=entry.get("CreateTime"),
        charge=_hourly("nat-gateway"),
    )


def _address(entry: Entry, location: Location) -> Resource:
    return ec2_resource(
        entry,
        location,
        arn_type="elastic-ip",
        resource_id=entry["AllocationId"],
        other_ids=(entry["PublicIp"],),
        parents=(entry.get("NetworkInterfaceId"), entry.get("InstanceId")),
        detail=entry["PublicIp"],
        charge=_hourly("public-ipv4"),
    )


def _endpoint(entry: Entry, location: Location) -> Resource | None:
    state = entry["State"].lower()
    if state == "deleted":
        return None
    billed = entry["VpcEndpointType"] == "Interface"
    return ec2_resource(
        entry,
        location,
        arn_type="vpc-endpoint",
        resource_id=entry["VpcEndpointId"],
        parents=(entry["VpcId"],),
        state=state,
        detail=f"{entry['VpcEndpointType'].lower()} endpoint of {entry['ServiceName']}",
        created=entry.get("CreationTimestamp"),
        charge=_hourly("interface-endpoint", len(entry.get("SubnetIds", ()))) if billed else FREE,
    )


def _interface(entry: Entry, location: Location) -> Resource:
    groups = tuple(group["GroupId"] for group in entry.get("Groups", ()))
    return ec2_resource(
        {"Tags": entry.get("TagSet") or entry.get("Tags")},
        location,
        arn_type="network-interface",
        resource_id=entry["NetworkInterfaceId"],
        parents=(entry.get("VpcId"), *groups, entry.get("Attachment", {}).get("InstanceId")),
        state=entry.get("Status", ""),
        detail=entry.get("Description", ""),
    )


def _hourly(product: str, quantity: int = 1) -> Charge:
    return Charge(items=(ChargedItem(product=product, quantity=Decimal(quantity)),))


NETWORK = (
    of_ec2(
        kind="NAT gateway",
        resource_type="NatGateway",
        arn_type="natgateway",
        permission="DescribeNatGateways",
        read=_nat_gateway,
    ),
    of_ec2(
        kind="Elastic IP address",
        resource_type="EIP",
        arn_type="elastic-ip",
        permission="DescribeAddresses",
        read=_address,
    ),
    of_ec2(
        kind="VPC endpoint",
        resource_type="VPCEndpoint",
        arn_type="vpc-endpoint",
        permission="DescribeVpcEndpoints",
        read=_endpoint,
    ),
    of_ec2(
        kind="network interface",
        resource_type="NetworkInterface",
        arn_type="network-interface",
        permission="DescribeNetworkInterfaces",
        read=_interface,
    ),
    of_ec2(
        kind="internet gateway",
        resource_type="InternetGateway",
        arn_type="internet-gateway",
        permission="DescribeInternetGateways",
        read=_internet_gateway,
        in_estimates=False,
    ),
    of_ec2(
        kind="security group",
        resource_type="SecurityGroup",
        arn_type="security-group",
        permission="DescribeSecurityGroups",
        read=_security_group,
    ),
    of_ec2(
        kind="network ACL",
        resource_type="NetworkAcl",
        arn_type="network-acl",
        permission="DescribeNetworkAcls",
        read=_network_acl,
        in_estimates=False,
    ),
    of_ec2(
        kind="route table",
        resource_type="RouteTable",
        arn_type="route-table",
        permission="DescribeRouteTables",
        read=_route_table,
        in_estimates=False,
    ),
    of_ec2(
        kind="subnet",
        resource_type="Subnet",
        arn_type="subnet",
        permission="DescribeSubnets",
        read=_subnet,
    ),
    of_ec2(
        kind="VPC",
        resource_type="VPC",
        arn_type="vpc",
        permission="DescribeVpcs",
        read=_vpc,
    ),
)

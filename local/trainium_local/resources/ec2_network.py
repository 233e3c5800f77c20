"""VPCs and what stands in them."""

from __future__ import annotations

from typing import Any

from trainium_local.resources import api
from trainium_local.resources.api_resource import ApiResource
from trainium_local.resources.ec2 import ec2, ec2_resource, ec2_tagging, interfaces
from trainium_local.resources.registry import Properties, Provisioned, ProvisioningError, Request, ResourceType
from trainium_local.resources.settings import Setting


def _refuse_while_used(what: str, current: Provisioned, uses: list[Any]) -> None:
    """AWS does not delete what something stands in; moto does."""
    if uses:
        raise ProvisioningError(f"The {what} '{current.physical_id}' has dependencies and cannot be deleted.", current)


class _Vpc(ApiResource):
    def after_create(self, request: Request, created: Provisioned, answer: dict[str, Any]) -> None:
        in_vpc = [{"Name": "vpc-id", "Values": [created.physical_id]}]
        group = ec2(request, "DescribeSecurityGroups", Filters=[*in_vpc, {"Name": "group-name", "Values": ["default"]}])
        created.attributes["DefaultSecurityGroup"] = group["SecurityGroups"][0]["GroupId"]
        acl = ec2(request, "DescribeNetworkAcls", Filters=[*in_vpc, {"Name": "default", "Values": ["true"]}])
        created.attributes["DefaultNetworkAcl"] = acl["NetworkAcls"][0]["NetworkAclId"]

    def attributes_now(self, region: str, physical_id: str) -> dict[str, Any]:
        (vpc,) = api.call("ec2", "DescribeVpcs", region, {"VpcIds": [physical_id]})["Vpcs"]
        ipv6 = vpc.get("Ipv6CidrBlockAssociationSet", [])
        return {
            "CidrBlockAssociations": [one["AssociationId"] for one in vpc.get("CidrBlockAssociationSet", [])],
            "Ipv6CidrBlocks": [one["Ipv6CidrBlock"] for one in ipv6],
        }

    def delete(self, request: Request, current: Provisioned) -> None:
        attached = [{"Name": "attachment.vpc-id", "Values": [current.physical_id]}]
        gateways = ec2(request, "DescribeInternetGateways", Filters=attached)["InternetGateways"]
        in_vpc = [{"Name": "vpc-id", "Values": [current.physical_id]}]
        groups = ec2(request, "DescribeSecurityGroups", Filters=in_vpc)["SecurityGroups"]
        own_groups = [group for group in groups if group["GroupName"] != "default"]
        _refuse_while_used("vpc", current, gateways + own_groups)
        super().delete(request, current)


class _Subnet(ApiResource):
    def delete(self, request: Request, current: Provisioned) -> None:
        _refuse_while_used("subnet", current, interfaces(request, "subnet-id", current.physical_id))
        super().delete(request, current)


class _CidrBlock(ApiResource):
    """A further block of a VPC, which EC2 answers in another place for IPv6."""

    def create(self, request: Request) -> Provisioned:
        answer = ec2(request, self.create_call, **request.properties)
        association = answer.get("CidrBlockAssociation") or answer["Ipv6CidrBlockAssociation"]
        block = association.get("CidrBlock") or association["Ipv6CidrBlock"]
        attributes = {"Id": association["AssociationId"], "Ipv6CidrBlock": block}
        return Provisioned(physical_id=association["AssociationId"], attributes=attributes)


class _ElasticIp(ApiResource):
    def delete(self, request: Request, current: Provisioned) -> None:
        allocation = current.attributes["AllocationId"]
        address = ec2(request, "DescribeAddresses", AllocationIds=[allocation])["Addresses"][0]
        if address.get("AssociationId"):
            ec2(request, "DisassociateAddress", AssociationId=address["AssociationId"])
        super().delete(request, current)


class _VpcEndpoint(ApiResource):
    def after_create(self, request: Request, created: Provisioned, answer: dict[str, Any]) -> None:
        endpoint = answer["VpcEndpoint"]
        created.attributes["NetworkInterfaceIds"] = endpoint.get("NetworkInterfaceIds", [])
        zone_and_name = [
            f"{entry.get('HostedZoneId', '')}:{entry['DnsName']}" for entry in endpoint.get("DnsEntries", [])
        ]
        created.attributes["DnsEntries"] = zone_and_name

    def update(self, request: Request, current: Provisioned, previous: Properties) -> Provisioned:
        new, changes = request.properties, {}
        for name in ("RouteTableIds", "SubnetIds", "SecurityGroupIds"):
            before, after = set(previous.get(name) or []), set(new.get(name) or [])
            changes |= {f"Add{name}": sorted(after - before), f"Remove{name}": sorted(before - after)}
        if new.get("PolicyDocument") != previous.get("PolicyDocument"):
            changes |= {"PolicyDocument": new.get("PolicyDocument"), "ResetPolicy": "PolicyDocument" not in new}
        filled = {key: value for key, value in changes.items() if value}
        if filled:
            ec2(request, "ModifyVpcEndpoint", VpcEndpointId=current.physical_id, **filled)
        handled = {*(f"{kind}Ids" for kind in ("RouteTable", "Subnet", "SecurityGroup")), "PolicyDocument"}
        return super().update(request, current, {**previous, **{key: new.get(key) for key in handled}})


class _GatewayAttachment(ApiResource):
    def create(self, request: Request) -> Provisioned:
        if "InternetGatewayId" not in request.properties:
            raise ProvisioningError("only internet gateways can be attached here: give InternetGatewayId")
        attached = Provisioned(physical_id=f"IGW|{request.properties['VpcId']}", attributes={"AttachmentType": "IGW"})
        api.call(self.service, self.create_call, request.region, request.properties)
        return attached

    def _identity(self, request: Request, current: Provisioned) -> dict[str, Any]:
        return {name: request.properties[name] for name in ("InternetGatewayId", "VpcId")}


_DESTINATIONS = ("DestinationCidrBlock", "DestinationIpv6CidrBlock", "DestinationPrefixListId")


class _Route(ApiResource):
    def create(self, request: Request) -> Provisioned:
        api.call(self.service, self.create_call, request.region, request.properties)
        destination = next(request.properties[name] for name in _DESTINATIONS if name in request.properties)
        table = request.properties["RouteTableId"]
        return Provisioned(physical_id=f"{table}|{destination}", attributes={"CidrBlock": destination})

    def _identity(self, request: Request, current: Provisioned) -> dict[str, Any]:
        return {
            name: request.properties[name] for name in ("RouteTableId", *_DESTINATIONS) if name in request.properties
        }


def _as_attribute(given: Any) -> dict[str, Any]:
    return {"Value": given}


def _vpc_attribute(name: str) -> Setting:
    return Setting(property_name=name, operation="ModifyVpcAttribute", argument=name, value=_as_attribute)


def _subnet_attribute(name: str) -> Setting:
    return Setting(property_name=name, operation="ModifySubnetAttribute", argument=name, value=_as_attribute)


_SUBNET_ATTRIBUTES = ("VpcId", "AvailabilityZone", "AvailabilityZoneId", "CidrBlock")

TYPES: dict[str, ResourceType] = {
    "AWS::EC2::VPC": ec2_resource(
        "Vpc",
        "vpc",
        kind=_Vpc,
        attributes={"CidrBlock": "{answer[Vpc][CidrBlock]}"},
        settings=(_vpc_attribute("EnableDnsSupport"), _vpc_attribute("EnableDnsHostnames")),
    ),
    "AWS::EC2::Subnet": ec2_resource(
        "Subnet",
        "subnet",
        kind=_Subnet,
        attributes={name: f"{{answer[Subnet][{name}]}}" for name in _SUBNET_ATTRIBUTES},
        settings=(_subnet_attribute("MapPublicIpOnLaunch"), _subnet_attribute("AssignIpv6AddressOnCreation")),
    ),
    "AWS::EC2::VPCCidrBlock": _CidrBlock(
        service="ec2",
        create_call="AssociateVpcCidrBlock",
        physical_id="",
        delete_call="DisassociateVpcCidrBlock",
        identified_by={"AssociationId": "{id}"},
    ),
    "AWS::EC2::InternetGateway": ec2_resource("InternetGateway", "internet-gateway"),
    "AWS::EC2::EgressOnlyInternetGateway": ec2_resource(
        "EgressOnlyInternetGateway", "egress-only-internet-gateway", attributes={"Id": "{id}"}
    ),
    "AWS::EC2::VPCGatewayAttachment": _GatewayAttachment(
        service="ec2", create_call="AttachInternetGateway", physical_id="", delete_call="DetachInternetGateway"
    ),
    "AWS::EC2::RouteTable": ec2_resource("RouteTable", "route-table"),
    "AWS::EC2::Route": _Route(
        service="ec2",
        create_call="CreateRoute",
        update_call="ReplaceRoute",
        delete_call="DeleteRoute",
        physical_id="",
    ),
    "AWS::EC2::SubnetRouteTableAssociation": ApiResource(
        service="ec2",
        create_call="AssociateRouteTable",
        physical_id="{answer[AssociationId]}",
        attributes={"Id": "{id}"},
        delete_call="DisassociateRouteTable",
        identified_by={"AssociationId": "{id}"},
    ),
    "AWS::EC2::EIP": ec2_resource(
        "Address",
        "elastic-ip",
        kind=_ElasticIp,
        create_call="AllocateAddress",
        physical_id="{answer[PublicIp]}",
        attributes={"AllocationId": "{answer[AllocationId]}", "PublicIp": "{id}"},
        delete_call="ReleaseAddress",
        identified_by={"AllocationId": "{attributes[AllocationId]}"},
        tagging=ec2_tagging("{attributes[AllocationId]}"),
    ),
    "AWS::EC2::NatGateway": ec2_resource("NatGateway", "natgateway"),
    "AWS::EC2::VPCEndpoint": ec2_resource(
        "VpcEndpoint",
        "vpc-endpoint",
        kind=_VpcEndpoint,
        attributes={"Id": "{id}", "CreationTimestamp": "{answer[VpcEndpoint][CreationTimestamp]}"},
        delete_call="DeleteVpcEndpoints",
        identified_by={"VpcEndpointIds": "{id}"},
    ),
    "AWS::EC2::FlowLog": ec2_resource(
        "FlowLogs",
        "vpc-flow-log",
        renamed={"ResourceId": "ResourceIds"},
        physical_id="{answer[FlowLogIds][0]}",
        attributes={"Id": "{id}"},
        identified_by={"FlowLogIds": "{id}"},
    ),
}

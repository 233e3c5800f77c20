"""EC2 types that need code in addition to their row in types.toml."""

from typing import Any

from trainium_local.resources import api
from trainium_local.resources.api_resource import ApiResource
from trainium_local.resources.registry import Properties, Provisioned, ProvisioningError, ResourceRequest

#: Source or destination of a rule -> the list of an IpPermission, and the key of its members.
_SOURCES = {
    "SourceSecurityGroupId": ("UserIdGroupPairs", "GroupId"),
    "DestinationSecurityGroupId": ("UserIdGroupPairs", "GroupId"),
    "CidrIp": ("IpRanges", "CidrIp"),
    "CidrIpv6": ("Ipv6Ranges", "CidrIpv6"),
    "SourcePrefixListId": ("PrefixListIds", "PrefixListId"),
    "DestinationPrefixListId": ("PrefixListIds", "PrefixListId"),
}


def _described(request: ResourceRequest, what: str, filters: dict[str, str]) -> list[Any]:
    """Return the matching resources of an EC2 describe call."""
    api_filters = [{"Name": name, "Values": [value]} for name, value in filters.items()]
    return api.call("ec2", f"Describe{what}", request.region, {"Filters": api_filters})[what]


def _refuse_while_used(what: str, current: Provisioned, uses: list[Any]) -> None:
    """Refuse to delete a VPC or subnet that resources use, as EC2 does. moto does not check these resources."""
    if uses:
        raise ProvisioningError(f"The {what} '{current.physical_id}' has dependencies and cannot be deleted.")


class _Vpc(ApiResource):
    def after_create(self, request: ResourceRequest, created: Provisioned, answer: dict[str, Any]) -> None:
        (group,) = _described(request, "SecurityGroups", {"vpc-id": created.physical_id, "group-name": "default"})
        (acl,) = _described(request, "NetworkAcls", {"vpc-id": created.physical_id, "default": "true"})
        created.attributes |= {"DefaultSecurityGroup": group["GroupId"], "DefaultNetworkAcl": acl["NetworkAclId"]}
        super().after_create(request, created, answer)

    def delete(self, request: ResourceRequest, current: Provisioned) -> None:
        gateways = _described(request, "InternetGateways", {"attachment.vpc-id": current.physical_id})
        groups = _described(request, "SecurityGroups", {"vpc-id": current.physical_id})
        _refuse_while_used("vpc", current, gateways + [group for group in groups if group["GroupName"] != "default"])
        super().delete(request, current)


class _Subnet(ApiResource):
    def delete(self, request: ResourceRequest, current: Provisioned) -> None:
        _refuse_while_used(
            "subnet", current, _described(request, "NetworkInterfaces", {"subnet-id": current.physical_id})
        )
        super().delete(request, current)


class _ElasticIp(ApiResource):
    def delete(self, request: ResourceRequest, current: Provisioned) -> None:
        for address in _described(request, "Addresses", {"allocation-id": current.attributes["AllocationId"]}):
            if address.get("AssociationId"):
                self.call(request, "DisassociateAddress", {"AssociationId": address["AssociationId"]})
        super().delete(request, current)


class _Instance(ApiResource):
    def adapt(self, properties: Properties) -> Properties:
        placement = {"GroupName": "PlacementGroupName", "AvailabilityZone": "AvailabilityZone", "Tenancy": "Tenancy"}
        interfaces = properties.get("NetworkInterfaces") or []
        profile = properties.get("IamInstanceProfile")
        return {
            **properties,
            "Placement": {new: properties[old] for new, old in placement.items() if old in properties} or None,
            "NetworkInterfaces": [{**interface, "Groups": interface.get("GroupSet")} for interface in interfaces]
            or None,
            "IamInstanceProfile": {"Name": profile} if profile else None,
            "Monitoring": {"Enabled": properties["Monitoring"]} if "Monitoring" in properties else None,
        }


class _LaunchTemplate(ApiResource):
    def update(self, request: ResourceRequest, current: Provisioned, previous: Properties) -> Provisioned:
        """Change the launch template's own tags in place: they do not belong to a version."""
        new, old = _own_tags(request.properties), _own_tags(previous)
        template = {"Resources": [current.physical_id]}
        if gone := [{"Key": key} for key in old.keys() - new.keys()]:
            self.call(request, "DeleteTags", template | {"Tags": gone})
        if new != old and new:
            self.call(request, "CreateTags", template | {"Tags": [{"Key": k, "Value": v} for k, v in new.items()]})
        tags = {name: value for name, value in request.properties.items() if name == "TagSpecifications"}
        return super().update(request, current, {k: v for k, v in previous.items() if k != "TagSpecifications"} | tags)


def _own_tags(properties: Properties) -> dict[str, str]:
    specifications = properties.get("TagSpecifications") or []
    return {tag["Key"]: tag["Value"] for specification in specifications for tag in specification.get("Tags") or []}


class _SecurityGroup(ApiResource):
    def adapt(self, properties: Properties) -> Properties:
        inline = [name for name in ("SecurityGroupIngress", "SecurityGroupEgress") if name in properties]
        return {**properties, **{name: [_permission(rule) for rule in properties[name]] for name in inline}}

    def delete(self, request: ResourceRequest, current: Provisioned) -> None:
        if _described(request, "NetworkInterfaces", {"group-id": current.physical_id}):
            raise ProvisioningError(f"resource {current.physical_id} has a dependent object")
        super().delete(request, current)


def _permission(rule: dict[str, Any]) -> dict[str, Any]:
    """Convert a rule in CloudFormation's flat form to an IpPermission."""
    description = {"Description": rule["Description"]} if rule.get("Description") else {}
    permission: dict[str, Any] = {key: rule[key] for key in ("IpProtocol", "FromPort", "ToPort") if key in rule}
    for source, (collection, key) in _SOURCES.items():
        if rule.get(source):
            permission[collection] = [{key: rule[source], **description}]
    return permission


class _Rule(ApiResource):
    """A security group rule as a separate resource."""

    def adapt(self, properties: Properties) -> Properties:
        return {"GroupId": properties["GroupId"], "IpPermissions": [_permission(properties)]}


KINDS: dict[str, type[ApiResource]] = {
    "AWS::EC2::EIP": _ElasticIp,
    "AWS::EC2::Instance": _Instance,
    "AWS::EC2::LaunchTemplate": _LaunchTemplate,
    "AWS::EC2::SecurityGroup": _SecurityGroup,
    "AWS::EC2::SecurityGroupEgress": _Rule,
    "AWS::EC2::SecurityGroupIngress": _Rule,
    "AWS::EC2::Subnet": _Subnet,
    "AWS::EC2::VPC": _Vpc,
}

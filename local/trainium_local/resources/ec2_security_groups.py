"""Security groups and their rules, inline and as resources of their own."""

from __future__ import annotations

from typing import Any

from trainium_local.resources.api_resource import ApiResource
from trainium_local.resources.ec2 import ec2_resource, interfaces
from trainium_local.resources.registry import Provisioned, ProvisioningError, Request, ResourceType
from trainium_local.resources.settings import Members


class _SecurityGroup(ApiResource):
    def delete(self, request: Request, current: Provisioned) -> None:
        if interfaces(request, "group-id", current.physical_id):
            raise ProvisioningError(f"resource {current.physical_id} has a dependent object", current)
        super().delete(request, current)


def _inline_rules(direction: str, *initial: dict[str, str]) -> Members:
    return Members(
        property_name=f"SecurityGroup{direction}",
        add=f"AuthorizeSecurityGroup{direction}",
        remove=f"RevokeSecurityGroup{direction}",
        arguments=lambda rule: {"IpPermissions": [_permission(rule)]},
        initial=initial,
    )


#: What a new group lets out until it is told otherwise.
_EVERYTHING = {"IpProtocol": "-1", "CidrIp": "0.0.0.0/0"}


#: A rule's source or destination -> where the API wants it.
_SOURCES = {
    "SourceSecurityGroupId": ("UserIdGroupPairs", "GroupId"),
    "DestinationSecurityGroupId": ("UserIdGroupPairs", "GroupId"),
    "CidrIp": ("IpRanges", "CidrIp"),
    "CidrIpv6": ("Ipv6Ranges", "CidrIpv6"),
    "SourcePrefixListId": ("PrefixListIds", "PrefixListId"),
    "DestinationPrefixListId": ("PrefixListIds", "PrefixListId"),
}


def _permission(rule: dict[str, Any]) -> dict[str, Any]:
    """A rule in CloudFormation's flat form -> one IpPermission."""
    description = {"Description": rule["Description"]} if rule.get("Description") else {}
    permission: dict[str, Any] = {key: rule[key] for key in ("IpProtocol", "FromPort", "ToPort") if key in rule}
    for source, (collection, key) in _SOURCES.items():
        if rule.get(source):
            permission[collection] = [{key: rule[source], **description}]
    return permission


def _security_group_rule(direction: str) -> ApiResource:
    return ApiResource(
        service="ec2",
        create_call=f"AuthorizeSecurityGroup{direction}",
        adapt=lambda rule: {"GroupId": rule["GroupId"], "IpPermissions": [_permission(rule)]},
        adapted=frozenset({"Description", *_SOURCES}),
        physical_id="{answer[SecurityGroupRules][0][SecurityGroupRuleId]}",
        attributes={"Id": "{id}"},
        delete_call=f"RevokeSecurityGroup{direction}",
        identified_by={"GroupId": "{properties[GroupId]}", "SecurityGroupRuleIds": "{id}"},
    )


TYPES: dict[str, ResourceType] = {
    "AWS::EC2::SecurityGroup": ec2_resource(
        "SecurityGroup",
        "security-group",
        kind=_SecurityGroup,
        name_property="GroupName",
        name_limit=255,
        renamed={"GroupDescription": "Description"},
        physical_id="{answer[GroupId]}",
        attributes={"GroupId": "{id}", "Id": "{id}", "VpcId": "{properties[VpcId]}"},
        settings=(_inline_rules("Ingress"), _inline_rules("Egress", _EVERYTHING)),
        identified_by={"GroupId": "{id}"},
    ),
    "AWS::EC2::SecurityGroupIngress": _security_group_rule("Ingress"),
    "AWS::EC2::SecurityGroupEgress": _security_group_rule("Egress"),
}

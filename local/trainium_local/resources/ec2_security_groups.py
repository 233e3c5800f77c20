"""Security groups and their rules, inline and as resources of their own."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from trainium_local.resources.api_resource import ApiResource
from trainium_local.resources.ec2 import ec2, ec2_resource, interfaces
from trainium_local.resources.registry import Provisioned, ProvisioningError, Request, ResourceType
from trainium_local.resources.settings import Calls, Members


class _SecurityGroup(ApiResource):
    def delete(self, request: Request, current: Provisioned) -> None:
        if interfaces(request, "group-id", current.physical_id):
            raise ProvisioningError(f"resource {current.physical_id} has a dependent object", current)
        super().delete(request, current)


class _InlineRules(Members):
    """A rule given twice is one rule: CloudFormation ignores that EC2 refuses the second."""

    def calls(self, old: Any, new: Any) -> Calls:
        return super().calls(_distinct(old), _distinct(new))


def _distinct(rules: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
    """The rules that differ in more than their description; the first of each kind."""
    return rules and list({str(_permission(rule | {"Description": ""})): rule for rule in rules[::-1]}.values())[::-1]


def _inline_rules(direction: str, *initial: dict[str, str]) -> Members:
    return _InlineRules(
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


class _Rule(ApiResource):
    """A rule as a resource of its own; one that is in the group already, such as its default one, becomes the resource.

    https://github.com/aws-cloudformation/cloudformation-coverage-roadmap/issues/1534: InvalidPermission.Duplicate fails
    nothing.
    """

    def create(self, request: Request) -> Provisioned:
        try:
            return super().create(request)
        except ClientError as error:
            if error.response["Error"]["Code"] != "InvalidPermission.Duplicate":
                raise
        in_group = [{"Name": "group-id", "Values": [request.properties["GroupId"]]}]
        found = ec2(request, "DescribeSecurityGroupRules", Filters=in_group)["SecurityGroupRules"]
        egress = self.create_call.endswith("Egress")
        rule = next(one for one in found if one["IsEgress"] == egress and _is_rule(one, request.properties))
        rule_id = rule["SecurityGroupRuleId"]
        return Provisioned(physical_id=rule_id, attributes={"Id": rule_id})


def _is_rule(found: dict[str, Any], rule: dict[str, Any]) -> bool:
    """Whether a rule as EC2 describes it is one in CloudFormation's form."""
    group = found.get("ReferencedGroupInfo", {}).get("GroupId")
    peer = found.get("CidrIpv4") or found.get("CidrIpv6") or found.get("PrefixListId") or group
    if found["IpProtocol"] != str(rule["IpProtocol"]) or peer not in [rule.get(source) for source in _SOURCES]:
        return False
    return found["IpProtocol"] == "-1" or all(str(found[end]) == str(rule[end]) for end in ("FromPort", "ToPort"))


def _security_group_rule(direction: str) -> ApiResource:
    return _Rule(
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

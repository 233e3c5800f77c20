"""Security groups and their rules, inline and as resources of their own."""

from typing import Any

from botocore.exceptions import ClientError

from trainium_local.resources.api_resource import ApiResource
from trainium_local.resources.ec2 import described
from trainium_local.resources.registry import Properties, Provisioned, ProvisioningError, Request

#: A rule's source or destination -> where the API wants it.
_SOURCES = {
    "SourceSecurityGroupId": ("UserIdGroupPairs", "GroupId"),
    "DestinationSecurityGroupId": ("UserIdGroupPairs", "GroupId"),
    "CidrIp": ("IpRanges", "CidrIp"),
    "CidrIpv6": ("Ipv6Ranges", "CidrIpv6"),
    "SourcePrefixListId": ("PrefixListIds", "PrefixListId"),
    "DestinationPrefixListId": ("PrefixListIds", "PrefixListId"),
}


class _SecurityGroup(ApiResource):
    def adapt(self, properties: Properties) -> Properties:
        """A rule given twice is one rule: CloudFormation ignores that EC2 refuses the second."""
        inline = [name for name in ("SecurityGroupIngress", "SecurityGroupEgress") if name in properties]
        return {**properties, **{name: _distinct(properties[name]) for name in inline}}

    def delete(self, request: Request, current: Provisioned) -> None:
        if described(request, "NetworkInterfaces", {"group-id": current.physical_id}):
            raise ProvisioningError(f"resource {current.physical_id} has a dependent object", current)
        super().delete(request, current)


def _distinct(rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rules that differ in more than their description; the first of each kind."""
    by_kind = {str(_permission(rule | {"Description": ""})): _permission(rule) for rule in rules[::-1]}
    return list(by_kind.values())[::-1]


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

    def adapt(self, properties: Properties) -> Properties:
        return {"GroupId": properties["GroupId"], "IpPermissions": [_permission(properties)]}

    def create(self, request: Request) -> Provisioned:
        try:
            return super().create(request)
        except ClientError as error:
            if error.response["Error"]["Code"] != "InvalidPermission.Duplicate":
                raise
        found = described(request, "SecurityGroupRules", {"group-id": request.properties["GroupId"]})
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


KINDS: dict[str, type[ApiResource]] = {
    "AWS::EC2::SecurityGroup": _SecurityGroup,
    "AWS::EC2::SecurityGroupEgress": _Rule,
    "AWS::EC2::SecurityGroupIngress": _Rule,
}

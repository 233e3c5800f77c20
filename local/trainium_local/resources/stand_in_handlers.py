"""CDK's own custom resources with functions for Node.js: done here, since only Python functions are run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

from trainium_local.resources import api
from trainium_local.resources.registry import Properties


def _empty_bucket(kind: str, properties: Properties, region: str) -> None:
    """`auto_delete_objects` of an S3 bucket."""
    if kind != "Delete":
        return
    bucket = properties["BucketName"]
    try:
        while versions := _versions(region, bucket):
            api.call("s3", "DeleteObjects", region, {"Bucket": bucket, "Delete": {"Objects": versions}})
    except ClientError as error:
        if not api.says_gone(error):
            raise


def _versions(region: str, bucket: str) -> list[dict[str, Any]]:
    page = api.call("s3", "ListObjectVersions", region, {"Bucket": bucket})
    found = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
    return [{"Key": one["Key"], "VersionId": one["VersionId"]} for one in found]


def _restrict_default_security_group(kind: str, properties: Properties, region: str) -> None:
    """The default security group of a VPC without rules, and with its rules again when the resource goes."""
    group = properties["DefaultSecurityGroupId"]
    inward = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]
    outward = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
    operation = "Authorize" if kind == "Delete" else "Revoke"
    for direction, permissions in (("Ingress", inward), ("Egress", outward)):
        try:
            call = f"{operation}SecurityGroup{direction}"
            api.call("ec2", call, region, {"GroupId": group, "IpPermissions": permissions})
        except ClientError as error:
            already = ("InvalidPermission.NotFound", "InvalidPermission.Duplicate")
            if error.response["Error"]["Code"] not in already:
                raise


HANDLERS: dict[str, Callable[[str, Properties, str], None]] = {
    "Custom::S3AutoDeleteObjects": _empty_bucket,
    "Custom::VpcRestrictDefaultSG": _restrict_default_security_group,
}

"""Replaces functions of the CDK's custom resources that need the AWS SDK for JavaScript."""

import json
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from boto3.session import Session
from botocore.exceptions import ClientError
from botocore.utils import EVENT_ALIASES

from trainium_local.resources import api
from trainium_local.resources.registry import Properties, Provisioned, ProvisioningError, ResourceRequest

Handler = Callable[[str, Properties, str, str], Provisioned]
"""The replacement of a function. Arguments: Create, Update or Delete; properties; region; physical ID."""

_NOTE = "The embedded AWS did this itself, without invoking the resource's function."


def _empty_bucket(kind: str, properties: Properties, region: str, physical_id: str) -> Provisioned:
    """Implements `auto_delete_objects` of an S3 bucket."""
    bucket = properties["BucketName"]
    if kind == "Delete":
        with api.ignoring_missing():
            while versions := _versions(region, bucket):
                api.call("s3", "DeleteObjects", region, {"Bucket": bucket, "Delete": {"Objects": versions}})
    return _done(physical_id)


def _versions(region: str, bucket: str) -> list[dict[str, Any]]:
    page = api.call("s3", "ListObjectVersions", region, {"Bucket": bucket})
    versions = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
    return [{"Key": version["Key"], "VersionId": version["VersionId"]} for version in versions]


def _restrict_default_security_group(kind: str, properties: Properties, region: str, physical_id: str) -> Provisioned:
    """Removes the rules of a VPC's default security group, and restores them when the resource is deleted."""
    group = properties["DefaultSecurityGroupId"]
    inward = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]
    outward = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
    operation = "Authorize" if kind == "Delete" else "Revoke"
    for direction, permissions in (("Ingress", inward), ("Egress", outward)):
        with _allowed("InvalidPermission.NotFound", "InvalidPermission.Duplicate"):
            arguments = {"GroupId": group, "IpPermissions": permissions}
            api.call("ec2", f"{operation}SecurityGroup{direction}", region, arguments)
    return _done(physical_id)


def _call_service(kind: str, properties: Properties, region: str, physical_id: str) -> Provisioned:
    """Implements `AwsCustomResource`: one call of a service for each event, in terms of the AWS SDK for JavaScript."""
    text = properties.get(kind)
    if not text:
        return _done(physical_id)
    text = text.replace('"PHYSICAL:RESOURCEID:"', json.dumps(physical_id))
    call = json.loads(re.sub(r'"(TRUE|FALSE):BOOLEAN"', lambda match: match[1].lower(), text))
    action = call["action"].removesuffix("Command")
    operation = action[0].upper() + action[1:]
    service = re.sub(r"[^a-z0-9]", "", call["service"].removeprefix("@aws-sdk/client-").lower())
    if service not in _services():
        raise ProvisioningError(f"Package @aws-sdk/client-{service} does not exist.")
    id_source, response = call.get("physicalResourceId") or {}, dict[str, str]()
    try:
        answer = api.call(_services()[service], operation, call.get("region") or region, call.get("parameters") or {})
        answer.pop("ResponseMetadata", None)
        response = {path: str(value) for path, value in _flat(answer)}
    except ClientError as error:
        ignored = call.get("ignoreErrorCodesMatching")
        if not ignored or not re.search(ignored, error.response["Error"]["Code"]):
            raise
    paths = tuple(call.get("outputPaths") or ([call["outputPath"]] if "outputPath" in call else ()))
    data = {path: value for path, value in response.items() if not paths or path.startswith(paths)}
    return _done(id_source.get("id") or response.get(id_source.get("responsePath", "")) or physical_id, data)


@cache
def _services() -> dict[str, str]:
    """Return botocore's names of the services by their names in the SDK for JavaScript, without hyphens."""
    names: list[str] = Session().get_available_services()
    services = {name: name for name in names} | {sdk: name for name, sdk in EVENT_ALIASES.items() if name in names}
    return {sdk.replace("-", ""): name for sdk, name in services.items()} | {"cloudwatchevents": "events"}


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all scalars in a value, with their paths, e.g. Items.0.Name."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _flat(item, f"{path}.{key}" if path else str(key))
    else:
        yield path, value.read().decode() if hasattr(value, "read") else value


@contextmanager
def _allowed(*codes: str) -> Generator[None]:
    try:
        yield
    except ClientError as error:
        if error.response["Error"]["Code"] not in codes:
            raise


def _done(physical_id: str, attributes: dict[str, Any] | None = None) -> Provisioned:
    return Provisioned(physical_id=physical_id, attributes=attributes or {}, note=_NOTE)


_HANDLERS: dict[str, Handler] = {
    "Custom::S3AutoDeleteObjects": _empty_bucket,
    "Custom::VpcRestrictDefaultSG": _restrict_default_security_group,
}


def find(request: ResourceRequest) -> Handler | None:
    """Return the replacement of a CDK function, or None for other functions."""
    if "InstallLatestAwsSdk" in request.properties:  # the user chooses the type of an AwsCustomResource
        return _call_service
    return _HANDLERS.get(request.resource_type)

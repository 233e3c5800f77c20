"""CDK's own custom resources, done here: their functions need an AWS SDK for Node.js or a command line in /opt."""

import io
import json
import mimetypes
import re
import zipfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from boto3.session import Session
from botocore.exceptions import ClientError
from botocore.utils import EVENT_ALIASES

from trainium_local.resources import api
from trainium_local.resources.registry import Properties, Provisioned, ProvisioningError, Request

Handler = Callable[[str, Properties, str, str], Provisioned]
"""What does the work of a function, given Create, Update or Delete, the properties, the region and the physical id."""

_NOTE = "The embedded AWS did this itself, not the resource's function."


def _empty_bucket(kind: str, properties: Properties, region: str, physical_id: str) -> Provisioned:
    """`auto_delete_objects` of an S3 bucket."""
    bucket = properties["BucketName"]
    if kind == "Delete":
        with api.gone_is_fine():
            while versions := _versions(region, bucket):
                api.call("s3", "DeleteObjects", region, {"Bucket": bucket, "Delete": {"Objects": versions}})
    return _done(physical_id)


def _versions(region: str, bucket: str) -> list[dict[str, Any]]:
    page = api.call("s3", "ListObjectVersions", region, {"Bucket": bucket})
    found = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
    return [{"Key": one["Key"], "VersionId": one["VersionId"]} for one in found]


def _restrict_default_security_group(kind: str, properties: Properties, region: str, physical_id: str) -> Provisioned:
    """The default security group of a VPC without rules, and with its rules again when the resource goes."""
    group = properties["DefaultSecurityGroupId"]
    inward = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]
    outward = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
    operation = "Authorize" if kind == "Delete" else "Revoke"
    for direction, permissions in (("Ingress", inward), ("Egress", outward)):
        with _allowed("InvalidPermission.NotFound", "InvalidPermission.Duplicate"):
            given = {"GroupId": group, "IpPermissions": permissions}
            api.call("ec2", f"{operation}SecurityGroup{direction}", region, given)
    return _done(physical_id)


def _retain_logs(kind: str, properties: Properties, region: str, _physical_id: str) -> Provisioned:
    """`logRetention` of a function: its log group with a retention."""
    group, region = {"logGroupName": properties["LogGroupName"]}, properties.get("LogGroupRegion") or region
    if kind != "Delete":
        with _allowed("ResourceAlreadyExistsException"):
            api.call("logs", "CreateLogGroup", region, group)
        days = properties.get("RetentionInDays")
        operation = "PutRetentionPolicy" if days else "DeleteRetentionPolicy"
        api.call("logs", operation, region, {**group, "retentionInDays": days})
    elif properties.get("RemovalPolicy") == "destroy":
        with api.gone_is_fine():
            api.call("logs", "DeleteLogGroup", region, group)
    return _done(properties["LogGroupName"], {"LogGroupName": properties["LogGroupName"]})


def _deploy_to_bucket(kind: str, properties: Properties, region: str, physical_id: str) -> Provisioned:
    """`BucketDeployment`: the files of archives, copied into a bucket."""
    bucket, prefix = properties["DestinationBucketName"], properties.get("DestinationBucketKeyPrefix", "").strip("/")
    prefix = f"{prefix}/" if prefix else ""
    keys = properties["SourceObjectKeys"]
    wanted: dict[str, bytes] = {}
    if kind != "Delete":
        markers_of = properties.get("SourceMarkers") or [{}] * len(keys)
        for source, key, markers in zip(properties["SourceBucketNames"], keys, markers_of, strict=True):
            body = api.call("s3", "GetObject", region, {"Bucket": source, "Key": key})["Body"].read()
            if _as_bool(properties.get("Extract"), default=True):
                with zipfile.ZipFile(io.BytesIO(body)) as archive:
                    names = [name for name in archive.namelist() if not name.endswith("/")]
                    wanted |= {prefix + name: _filled(archive.read(name), markers) for name in names}
            else:
                wanted[prefix + key.rsplit("/", 1)[-1]] = body
    elif _as_bool(properties.get("RetainOnDelete"), default=True):
        return _done(physical_id)
    for name, content in wanted.items():
        kind_of_content = mimetypes.guess_type(name)[0] or "binary/octet-stream"
        given = {"Bucket": bucket, "Key": name, "Body": content, "ContentType": kind_of_content}
        api.call("s3", "PutObject", region, given)
    if kind == "Delete" or _as_bool(properties.get("Prune"), default=True):
        with api.gone_is_fine():
            pages = api.client("s3", region).get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
            for name in [one["Key"] for page in pages for one in page.get("Contents", [])]:
                if name not in wanted:
                    api.call("s3", "DeleteObject", region, {"Bucket": bucket, "Key": name})
    found = {"DestinationBucketArn": properties.get("DestinationBucketArn"), "SourceObjectKeys": keys}
    return _done(physical_id, {name: value for name, value in found.items() if value is not None})


def _filled(content: bytes, markers: Properties) -> bytes:
    for marker, value in markers.items():
        content = content.replace(marker.encode(), str(value).encode())
    return content


def _as_bool(given: Any, *, default: bool) -> bool:
    return default if given is None else str(given).lower() == "true"


def _export_to_region(kind: str, properties: Properties, _region: str, physical_id: str) -> Provisioned:
    """`cross_region_references`: values of the stack as parameters in the region of the stack that reads them."""
    target = properties["WriterProps"]
    for name, value in target["exports"].items():
        if kind == "Delete":
            with api.gone_is_fine():
                api.call("ssm", "DeleteParameter", target["region"], {"Name": name})
        else:
            given = {"Name": name, "Value": value, "Type": "String", "Overwrite": True}
            api.call("ssm", "PutParameter", target["region"], given)
    return _done(physical_id)


def _import_from_region(_kind: str, properties: Properties, _region: str, physical_id: str) -> Provisioned:
    return _done(physical_id, dict(properties["ReaderProps"]["imports"]))


def _call_service(kind: str, properties: Properties, region: str, physical_id: str) -> Provisioned:
    """`AwsCustomResource`: a call of a service at each event, written for the SDK of Node.js."""
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
    given, found = call.get("physicalResourceId") or {}, dict[str, str]()
    try:
        answer = api.call(_services()[service], operation, call.get("region") or region, call.get("parameters") or {})
        answer.pop("ResponseMetadata", None)
        found = {path: str(value) for path, value in _flat(answer)}
    except ClientError as error:
        ignored = call.get("ignoreErrorCodesMatching")
        if not ignored or not re.search(ignored, error.response["Error"]["Code"]):
            raise
    paths = tuple(call.get("outputPaths") or ([call["outputPath"]] if "outputPath" in call else ()))
    kept = {path: value for path, value in found.items() if not paths or path.startswith(paths)}
    return _done(given.get("id") or found.get(given.get("responsePath", "")) or physical_id, kept)


@cache
def _services() -> dict[str, str]:
    """botocore's names of the services by those of the SDK of JavaScript, without their hyphens."""
    names: list[str] = Session().get_available_services()
    known = {name: name for name in names} | {sdk: name for name, sdk in EVENT_ALIASES.items() if name in names}
    return {sdk.replace("-", ""): name for sdk, name in known.items()} | {"cloudwatchevents": "events"}


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The scalars below a value by their paths, Items.0.Name."""
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
    "Custom::CDKBucketDeployment": _deploy_to_bucket,
    "Custom::CrossRegionExportReader": _import_from_region,
    "Custom::CrossRegionExportWriter": _export_to_region,
    "Custom::LogRetention": _retain_logs,
    "Custom::S3AutoDeleteObjects": _empty_bucket,
    "Custom::VpcRestrictDefaultSG": _restrict_default_security_group,
}


def find(request: Request) -> Handler | None:
    """What does the work of one of CDK's functions, None for any other."""
    if "InstallLatestAwsSdk" in request.properties:  # the type of an AwsCustomResource is its user's choice
        return _call_service
    return _HANDLERS.get(request.resource_type)

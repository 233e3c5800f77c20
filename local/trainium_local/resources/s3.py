"""S3 buckets with their settings, and bucket policies."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from trainium_local.resources import api
from trainium_local.resources.api_resource import ApiResource
from trainium_local.resources.registry import Actual, Provisioned, Request, ResourceType
from trainium_local.resources.settings import Setting


class _Bucket(ApiResource):
    """Tags are a setting here: S3 has no call that adds one tag."""

    def _create_arguments(self, request: Request, facts: Mapping[str, Any]) -> dict[str, Any]:
        arguments = super()._create_arguments(request, facts) | {"Bucket": facts["name"]}
        # S3 refuses its own home as a location
        location = None if request.region == "us-east-1" else {"LocationConstraint": request.region}
        access = re.sub(r"(?<!^)(?=[A-Z])", "-", request.properties.get("AccessControl", "Private")).lower()
        return arguments | {"CreateBucketConfiguration": location, "ACL": access}

    def _tag_property(self, request: Request) -> str | None:
        return None

    def read(self, request: Request, physical_id: str) -> Actual | None:
        buckets = api.call("s3", "ListBuckets", request.region, {})["Buckets"]
        if physical_id not in {bucket["Name"] for bucket in buckets}:
            return None
        versioning = api.call("s3", "GetBucketVersioning", request.region, {"Bucket": physical_id})
        status = {"Status": versioning["Status"]} if "Status" in versioning else None
        names = {"id": physical_id, "region": request.region}
        attributes = {name: text.format_map(names) for name, text in self.attributes.items()}
        return Actual(
            provisioned=Provisioned(physical_id=physical_id, attributes=attributes),
            properties={"BucketName": physical_id, "VersioningConfiguration": status},
        )


def _encryption(given: dict[str, Any]) -> dict[str, Any]:
    rules = [
        {
            "ApplyServerSideEncryptionByDefault": rule.get("ServerSideEncryptionByDefault"),
            "BucketKeyEnabled": rule.get("BucketKeyEnabled"),
        }
        for rule in given["ServerSideEncryptionConfiguration"]
    ]
    return {"Rules": rules}


def _lifecycle(given: dict[str, Any]) -> dict[str, Any]:
    return {"Rules": [_lifecycle_rule(rule) for rule in given["Rules"]]}


def _lifecycle_rule(rule: dict[str, Any]) -> dict[str, Any]:
    """CloudFormation's flat rule -> the API's nested one."""
    expiration = {
        "Days": rule.get("ExpirationInDays"),
        "Date": rule.get("ExpirationDate"),
        "ExpiredObjectDeleteMarker": rule.get("ExpiredObjectDeleteMarker"),
    }
    transitions = [
        {"Days": one.get("TransitionInDays"), "Date": one.get("TransitionDate"), "StorageClass": one["StorageClass"]}
        for one in rule.get("Transitions") or []
    ]
    noncurrent = [
        {"NoncurrentDays": one["TransitionInDays"], "StorageClass": one["StorageClass"]}
        for one in rule.get("NoncurrentVersionTransitions") or []
    ]
    prefix, tags = rule.get("Prefix", ""), rule.get("TagFilters")
    return {
        "ID": rule.get("Id"),
        "Status": rule["Status"],
        "Filter": {"And": {"Prefix": prefix, "Tags": tags}} if tags else {"Prefix": prefix},
        "Expiration": expiration if any(value is not None for value in expiration.values()) else None,
        "Transitions": transitions or None,
        "NoncurrentVersionTransitions": noncurrent or None,
        "NoncurrentVersionExpiration": rule.get("NoncurrentVersionExpiration"),
        "AbortIncompleteMultipartUpload": rule.get("AbortIncompleteMultipartUpload"),
    }


def _notifications(given: dict[str, Any]) -> dict[str, Any]:
    """EventBridge, which the API switches on by an empty structure."""
    told = given.get("EventBridgeConfiguration")
    switched_off = told is None or str(told.get("EventBridgeEnabled", True)).lower() == "false"
    return {} if switched_off else {"EventBridgeConfiguration": {}}


def _setting(
    name: str, call: str, argument: str, value: Callable[[Any], Any] | None = None, reset: str = ""
) -> Setting:
    return Setting(
        property_name=name, operation=call, argument=argument, value=value or (lambda given: given), reset=reset
    )


_SETTINGS = (
    _setting("Tags", "PutBucketTagging", "Tagging", lambda tags: {"TagSet": tags}, "DeleteBucketTagging"),
    _setting(
        "BucketEncryption",
        "PutBucketEncryption",
        "ServerSideEncryptionConfiguration",
        _encryption,
        "DeleteBucketEncryption",
    ),
    _setting(
        "PublicAccessBlockConfiguration",
        "PutPublicAccessBlock",
        "PublicAccessBlockConfiguration",
        reset="DeletePublicAccessBlock",
    ),
    _setting("VersioningConfiguration", "PutBucketVersioning", "VersioningConfiguration"),
    _setting(
        "LifecycleConfiguration",
        "PutBucketLifecycleConfiguration",
        "LifecycleConfiguration",
        _lifecycle,
        "DeleteBucketLifecycle",
    ),
    _setting(
        "OwnershipControls",
        "PutBucketOwnershipControls",
        "OwnershipControls",
        reset="DeleteBucketOwnershipControls",
    ),
    _setting(
        "NotificationConfiguration",
        "PutBucketNotificationConfiguration",
        "NotificationConfiguration",
        _notifications,
    ),
    _setting(
        "LoggingConfiguration",
        "PutBucketLogging",
        "BucketLoggingStatus",
        lambda given: {
            "LoggingEnabled": {
                "TargetBucket": given["DestinationBucketName"],
                "TargetPrefix": given.get("LogFilePrefix", ""),
            }
        },
    ),
)


TYPES: dict[str, ResourceType] = {
    "AWS::S3::Bucket": _Bucket(
        service="s3",
        create_call="CreateBucket",
        name_property="BucketName",
        name_limit=63,
        lowercase_name=True,
        physical_id="{name}",
        attributes={
            "Arn": "arn:aws:s3:::{id}",
            "DomainName": "{id}.s3.amazonaws.com",
            "RegionalDomainName": "{id}.s3.{region}.amazonaws.com",
            "DualStackDomainName": "{id}.s3.dualstack.{region}.amazonaws.com",
            "WebsiteURL": "http://{id}.s3-website-{region}.amazonaws.com",
        },
        settings=_SETTINGS,
        adapted=frozenset({"AccessControl"}),
        delete_call="DeleteBucket",
        identified_by={"Bucket": "{id}"},
    ),
    "AWS::S3::BucketPolicy": ApiResource(
        service="s3",
        create_call="PutBucketPolicy",
        update_call="PutBucketPolicy",
        renamed={"PolicyDocument": "Policy"},
        physical_id="{properties[Bucket]}",
        delete_call="DeleteBucketPolicy",
        identified_by={"Bucket": "{id}"},
    ),
}

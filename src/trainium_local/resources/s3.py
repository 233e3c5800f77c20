"""S3 buckets: converts their settings to the API's form."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from trainium_local.resources.api_resource import ApiResource
from trainium_local.resources.registry import Properties, ProvisioningError, Request


class _Bucket(ApiResource):
    def adapt(self, properties: Properties) -> Properties:
        return {**properties, **{name: form(properties[name]) for name, form in _FORMS.items() if name in properties}}

    def _create_arguments(self, request: Request, variables: Mapping[str, Any]) -> dict[str, Any]:
        # S3 refuses us-east-1 as a location constraint
        location = None if request.region == "us-east-1" else {"LocationConstraint": request.region}
        return super()._create_arguments(request, variables) | {"CreateBucketConfiguration": location}


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
    """Convert a lifecycle rule from CloudFormation's flat form to the API's nested one."""
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
    """Enable EventBridge, for which the API expects an empty structure."""
    if others := given.keys() - {"EventBridgeConfiguration"}:
        raise ProvisioningError(f"The embedded AWS does not support {', '.join(sorted(others))} of a bucket")
    event_bridge = given.get("EventBridgeConfiguration")
    enabled = event_bridge is not None and str(event_bridge.get("EventBridgeEnabled", True)).lower() != "false"
    return {"EventBridgeConfiguration": {}} if enabled else {}


def _access(given: str) -> str:
    """PublicRead -> public-read"""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", given).lower()


_FORMS: dict[str, Callable[[Any], Any]] = {
    "AccessControl": _access,
    "BucketEncryption": _encryption,
    "LifecycleConfiguration": _lifecycle,
    "NotificationConfiguration": _notifications,
}
KINDS = {"AWS::S3::Bucket": _Bucket}

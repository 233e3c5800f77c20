"""S3 buckets: converts their settings to the API's form."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from trainium_local.resources.api_resource import ApiResource
from trainium_local.resources.registry import Properties, ProvisioningError, ResourceRequest


class _Bucket(ApiResource):
    def adapt(self, properties: Properties) -> Properties:
        return {**properties, **{name: form(properties[name]) for name, form in _FORMS.items() if name in properties}}

    def _create_arguments(self, request: ResourceRequest, variables: Mapping[str, Any]) -> dict[str, Any]:
        # S3 refuses us-east-1 as a location constraint
        location = None if request.region == "us-east-1" else {"LocationConstraint": request.region}
        return super()._create_arguments(request, variables) | {"CreateBucketConfiguration": location}


def _encryption(encryption: dict[str, Any]) -> dict[str, Any]:
    rules = [
        {
            "ApplyServerSideEncryptionByDefault": rule.get("ServerSideEncryptionByDefault"),
            "BucketKeyEnabled": rule.get("BucketKeyEnabled"),
        }
        for rule in encryption["ServerSideEncryptionConfiguration"]
    ]
    return {"Rules": rules}


def _lifecycle(lifecycle: dict[str, Any]) -> dict[str, Any]:
    return {"Rules": [_lifecycle_rule(rule) for rule in lifecycle["Rules"]]}


_RULE_PROPERTIES = frozenset(
    {
        "AbortIncompleteMultipartUpload",
        "ExpirationDate",
        "ExpirationInDays",
        "ExpiredObjectDeleteMarker",
        "Id",
        "NoncurrentVersionExpiration",
        "NoncurrentVersionTransitions",
        "Prefix",
        "Status",
        "TagFilters",
        "Transitions",
    }
)


def _lifecycle_rule(rule: dict[str, Any]) -> dict[str, Any]:
    """Convert a lifecycle rule from CloudFormation's flat form to the API's nested one."""
    if others := rule.keys() - _RULE_PROPERTIES:
        raise ProvisioningError(f"The embedded AWS does not support {', '.join(sorted(others))} of a lifecycle rule")
    expiration = {
        "Days": rule.get("ExpirationInDays"),
        "Date": rule.get("ExpirationDate"),
        "ExpiredObjectDeleteMarker": rule.get("ExpiredObjectDeleteMarker"),
    }
    transitions = [
        {
            "Days": transition.get("TransitionInDays"),
            "Date": transition.get("TransitionDate"),
            "StorageClass": transition["StorageClass"],
        }
        for transition in rule.get("Transitions") or []
    ]
    noncurrent = [
        {"NoncurrentDays": transition["TransitionInDays"], "StorageClass": transition["StorageClass"]}
        for transition in rule.get("NoncurrentVersionTransitions") or []
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


def _notifications(notifications: dict[str, Any]) -> dict[str, Any]:
    """Enable EventBridge, for which the API expects an empty structure."""
    if others := notifications.keys() - {"EventBridgeConfiguration"}:
        raise ProvisioningError(f"The embedded AWS does not support {', '.join(sorted(others))} of a bucket")
    event_bridge = notifications.get("EventBridgeConfiguration")
    enabled = event_bridge is not None and str(event_bridge.get("EventBridgeEnabled", True)).lower() != "false"
    return {"EventBridgeConfiguration": {}} if enabled else {}


def _access(access: str) -> str:
    """PublicRead -> public-read"""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", access).lower()


_FORMS: dict[str, Callable[[Any], Any]] = {
    "AccessControl": _access,
    "BucketEncryption": _encryption,
    "LifecycleConfiguration": _lifecycle,
    "NotificationConfiguration": _notifications,
}
KINDS = {"AWS::S3::Bucket": _Bucket}

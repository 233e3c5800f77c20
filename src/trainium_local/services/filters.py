"""Filters of EC2's describe calls."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE, get_prefix, simple_aws_filter_to_re

from trainium_local.tags import tag_values


def instance_value_in_filter_values(instance_value: Any, filter_values: Sequence[str]) -> bool:
    """Return whether an attribute, with one or several values, matches one of the filter's values, e.g. `web-*`."""
    patterns = [re.compile(simple_aws_filter_to_re(value)) for value in filter_values]
    values = instance_value if isinstance(instance_value, list) else [instance_value]
    return any(pattern.match(_as_filter_text(value)) for value in values for pattern in patterns)


def _as_filter_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def matches(entry: Mapping[str, Any], filters: Mapping[str, list[str]]) -> bool:
    """Return whether a resource, as EC2 describes it, passes the filters. instance-type refers to its InstanceType."""
    tags = tag_values(entry["Tags"])
    for name, allowed in filters.items():
        if name == "tag-key":
            values = tags.keys()
        elif name.startswith("tag:"):
            values = {tags.get(name.removeprefix("tag:"))}
        else:
            values = {entry.get(name.title().replace("-", ""))}
        if not values & set(allowed):
            return False
    return True


def describe_tags(original: Any, backend: Any, filters: dict[str, list[str]] | None = None) -> list[dict[str, str]]:
    """Apply the filter `tag:KEY`, which moto ignores."""
    api_filters = dict(filters or {})
    for name in [name for name in api_filters if name.startswith("tag:")]:
        api_filters |= {"key": [name.removeprefix("tag:")], "value": api_filters.pop(name)}
    return original(backend, api_filters or None)


def describe_snapshots(original: Any, response: Any) -> Any:
    """Apply the owners in the request. moto ignores them, and returns the snapshots of all public images too."""
    owners = response._get_param("OwnerIds", [])
    if not owners or "amazon" in owners:
        return original(response)
    ids = [response.current_account if owner == "self" else owner for owner in owners]
    filters = {"owner-id": ids, **response._filters_from_querystring()}
    snapshot_ids = response._get_param("SnapshotIds", [])
    return ActionResult(
        {"Snapshots": response.ec2_backend.describe_snapshots(snapshot_ids=snapshot_ids, filters=filters)}
    )


def get_tags(resource: Any) -> list[dict[str, str]]:
    """Return the tags of one resource."""
    tags = resource.ec2_backend.tags.get(resource.id) or {}
    kind = EC2_PREFIX_TO_RESOURCE.get(get_prefix(resource.id), "") if tags else ""
    return [
        {"resource_id": resource.id, "key": key, "value": value, "resource_type": kind} for key, value in tags.items()
    ]

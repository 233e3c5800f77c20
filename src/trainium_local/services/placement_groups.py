"""EC2 placement groups, which moto lacks: create, describe, delete. A group in use cannot be deleted."""

from typing import Any

from moto.core.responses import ActionResult, EmptyResult
from moto.ec2.utils import convert_tag_spec
from moto.moto_api._internal import mock_random

from trainium_local.services.errors import refusal
from trainium_local.services.filters import matches

GONE = ("terminated", "shutting-down")


def placement_groups(backend: Any) -> dict[str, dict[str, Any]]:
    """Return the placement groups of a region by name, as DescribePlacementGroups returns them."""
    return vars(backend).setdefault("placement_groups", {})


def existing(backend: Any, name: str) -> dict[str, Any]:
    """Return a placement group.

    Raises:
        Refused: AWS's InvalidPlacementGroup.Unknown.
    """
    group = placement_groups(backend).get(name)
    if group is None:
        raise refusal("placement-group-unknown", group=name)
    return group


def create_placement_group(response: Any) -> ActionResult:
    backend, name = response.ec2_backend, response._get_param("GroupName")
    if name in placement_groups(backend):
        raise refusal("placement-group-exists", group=name)
    tags = convert_tag_spec(response._get_param("TagSpecifications", []) or []).get("placement-group", {})
    group: dict[str, Any] = {
        "GroupName": name,
        "GroupId": "pg-" + mock_random.get_random_hex(17),
        "GroupArn": f"arn:aws:ec2:{response.region}:{response.current_account}:placement-group/{name}",
        "State": "available",
        "Strategy": response._get_param("Strategy") or "cluster",
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
    }
    if partitions := response._get_param("PartitionCount"):
        group["PartitionCount"] = int(partitions)
    if level := response._get_param("SpreadLevel"):
        group["SpreadLevel"] = level
    placement_groups(backend)[name] = group
    return ActionResult({"PlacementGroup": group})


def describe_placement_groups(response: Any) -> ActionResult:
    backend = response.ec2_backend
    names = response._get_param("GroupNames", []) or []
    ids = response._get_param("GroupIds", []) or []
    filters = response._filters_from_querystring()
    groups = [existing(backend, name) for name in names] or list(placement_groups(backend).values())
    matching = [group for group in groups if (not ids or group["GroupId"] in ids) and matches(group, filters)]
    return ActionResult({"PlacementGroups": matching})


def delete_placement_group(response: Any) -> EmptyResult:
    backend, name = response.ec2_backend, response._get_param("GroupName")
    existing(backend, name)
    if any(
        instance.placement.group_name == name and instance.state not in GONE for instance in backend.all_instances()
    ):
        raise refusal("placement-group-in-use", group=name)
    del placement_groups(backend)[name]
    return EmptyResult()

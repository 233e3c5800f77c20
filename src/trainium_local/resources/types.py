"""The types in types.toml, provisioned by API calls. A few types need a subclass."""

import tomllib
from importlib.resources import files
from typing import Any

from trainium_local.resources import adapted_types, autoscaling, ec2, s3
from trainium_local.resources.api_resource import ApiResource, AttachedResource, Tagging
from trainium_local.resources.settings import ResourceSetting

_KINDS: dict[str, type[ApiResource]] = {**adapted_types.KINDS, **autoscaling.KINDS, **ec2.KINDS, **s3.KINDS}


def row_type(resource_type: str, row: dict[str, Any]) -> ApiResource:
    """Return the resource type of a row."""
    fallback = ApiResource if "create_call" in row else AttachedResource
    fields: dict[str, Any] = {
        **row,
        "adapted": frozenset(row.get("adapted", ())),
        "read_path": tuple(row.get("read_path", ())),
        "settings": tuple(ResourceSetting(**setting) for setting in row.get("settings", ())),
        "tagging": _tagging(row),
    }
    return _KINDS.get(resource_type, fallback)(**fields)


def _tagging(row: dict[str, Any]) -> Tagging | None:
    if "tagging" in row:
        return Tagging(**row["tagging"])
    if "ec2_tag_type" in row:
        return Tagging(identified_by={"Resources": ["{id}"]}, tag="CreateTags", untag="DeleteTags", keys="")
    return None


def types() -> dict[str, ApiResource]:
    """Return all types of the table."""
    table = tomllib.loads((files("trainium_local.resources") / "types.toml").read_text())
    return {name: row_type(name, row) for name, row in table.items()}

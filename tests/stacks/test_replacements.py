"""No update loses data: what holds some, and can be replaced, is kept when it is."""

from typing import Any, cast

from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from tests.constructs.synth import REGION, cluster_template

HOLD_DATA = ("AWS::EFS::FileSystem", "AWS::FSx::FileSystem", "AWS::S3::Bucket")


def create_only(resource: dict[str, Any]) -> set[str]:
    """The properties of the resource by which CloudFormation replaces it when they change, by its registry schema."""
    schema = cast(dict[str, Any], PROVIDER_SCHEMA_MANAGER.get_resource_schema(REGION, resource["Type"]).schema)  # pyright: ignore[reportUnknownMemberType]
    names = {path.split("/")[2] for path in schema.get("createOnlyProperties", [])}
    return names & resource.get("Properties", {}).keys()


def test_what_holds_data_is_kept_when_it_is_replaced() -> None:
    template = cluster_template(fsx_lustre=1200, efs="new")
    found = {name: one for name, one in template.resources().items() if one["Type"] in HOLD_DATA}
    assert {one["Type"] for one in found.values()} == set(HOLD_DATA)
    replaceable = {name: create_only(one) for name, one in found.items() if create_only(one)}
    assert {found[name]["Type"] for name in replaceable} == {"AWS::EFS::FileSystem", "AWS::FSx::FileSystem"}
    assert {found[name]["UpdateReplacePolicy"] for name in replaceable} == {"Retain"}

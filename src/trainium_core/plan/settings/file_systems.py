"""The shared file systems of the nodes: FSx for Lustre and EFS, new or existing."""

from typing import Any

from trainium_core.facts import facts
from trainium_core.setting_schema.forms import Choice, Pattern, SizeOrId
from trainium_core.setting_schema.setting import AT_DESTROY, HEX_ID, AtDestroy, resource_id, section, setting

NEW_EFS = "new"

_EXAMPLE = "such as fs-0123456789abcdef0"


def _lustre_size_or_id(lustre: Any) -> SizeOrId:
    smallest, step = lustre["smallest_gib"], lustre["step_gib"]
    new = f"the size of a new file system in GiB ({smallest}, or a multiple of {step})"
    return SizeOrId(smallest, step, f"fs-{HEX_ID}", f"{new}, or the ID of a file system, {_EXAMPLE}")


@section
class FileSystemSettings:
    """The file systems.

    Attributes:
        fsx_lustre: GiB of a new file system, or the ID of an existing file system.
        efs: NEW_EFS, or the ID of an existing file system.
    """

    fsx_lustre: int | str | None = setting(
        "fsx_lustre",
        _lustre_size_or_id(facts()["fsx_lustre"]),
        default=None,
        meaning="FSx for Lustre file system that the nodes mount at /fsx",
    )
    fsx_lustre_mount_name: str | None = setting(
        "fsx_lustre_mount_name",
        Pattern("[A-Za-z0-9_-]{1,8}", "the mount name of the file system, as FSx shows it"),
        default=None,
        default_text="that of the new file system",
        meaning="mount name of an existing FSx for Lustre file system",
    )
    fsx_lustre_security_group: str | None = setting(
        "fsx_lustre_security_group",
        resource_id("sg", "a security group of the file system"),
        default=None,
        default_text="that of the new file system",
        meaning="security group of an existing FSx for Lustre file system; the stack adds rules for the nodes, and "
        "removes them at destroy",
    )
    efs: str | None = setting(
        "efs",
        Pattern(f"{NEW_EFS}|fs-{HEX_ID}", f"{NEW_EFS}, or the ID of a file system, {_EXAMPLE}"),
        default=None,
        meaning="EFS file system that the nodes mount at /efs",
    )
    efs_security_group: str | None = setting(
        "efs_security_group",
        resource_id("sg", "a security group of the mount target in the nodes' zone"),
        default=None,
        default_text="that of a new mount target",
        meaning="security group of a mount target of an existing EFS file system; the stack adds rules for "
        "the nodes, and removes them at destroy",
    )
    at_destroy: AtDestroy = setting(
        "file_systems_at_destroy",
        Choice(AT_DESTROY),
        default="destroy",
        meaning="what happens to new file systems at destroy",
    )

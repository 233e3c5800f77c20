"""The settings of the shared file systems that nodes mount: FSx for Lustre and EFS, new or of the user's own."""

from collections.abc import Mapping

from trainium_core.facts import facts
from trainium_core.forms import Choice, Pattern, SizeOrId
from trainium_core.setting import HEX_ID, Setting, resource_id

NEW_EFS = "new"

_EXAMPLE = "such as fs-0123456789abcdef0"


def _settings() -> Mapping[str, Setting]:
    lustre = facts()["fsx_lustre"]
    return {
        "fsx_lustre": Setting(
            form=SizeOrId(
                lustre["smallest_gib"],
                lustre["step_gib"],
                f"fs-{HEX_ID}",
                f"the GiB of a new file system ({lustre['smallest_gib']}, or a multiple of {lustre['step_gib']}), "
                f"or the id of one, {_EXAMPLE}",
            ),
            default="none",
            meaning="FSx for Lustre file system that the nodes mount at /fsx",
        ),
        "fsx_lustre_mount_name": Setting(
            form=Pattern("[A-Za-z0-9_-]{1,8}", "the mount name of the file system, as FSx shows it"),
            default="that of the new file system",
            meaning="mount name of an FSx for Lustre file system of your own",
        ),
        "fsx_lustre_security_group": Setting(
            form=resource_id("sg", "a security group of the file system"),
            default="that of the new file system",
            meaning="group of an FSx for Lustre file system of your own; rules for the nodes are added, and go again",
        ),
        "efs": Setting(
            form=Pattern(f"{NEW_EFS}|fs-{HEX_ID}", f"{NEW_EFS}, or the id of a file system, {_EXAMPLE}"),
            default="none",
            meaning="EFS file system that the nodes mount at /efs",
        ),
        "efs_security_group": Setting(
            form=resource_id("sg", "a security group of the mount target in the nodes' zone"),
            default="that of a new mount target",
            meaning="group of a mount target of your own EFS file system; rules for the nodes are added, and go again",
        ),
        "file_systems_at_destroy": Setting(
            form=Choice(("destroy", "retain")),
            default="destroy",
            meaning="what happens to new file systems at destroy",
        ),
    }


FILE_SYSTEM_SETTINGS = _settings()

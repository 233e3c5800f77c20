"""Rules for the shared file systems."""

from collections.abc import Iterator

from trainium_core.plan.rules.rule import Rule, rule_decorator
from trainium_core.plan.settings.file_systems import NEW_EFS
from trainium_core.plan.settings_by_key import SETTINGS, setting_value
from trainium_core.plan.values import PlanValues
from trainium_core.problems import SETTING_PREFIX, Problem

FILE_SYSTEM_RULES: list[Rule] = []
rule = rule_decorator(FILE_SYSTEM_RULES)


@rule("fsx_lustre", "fsx_lustre_mount_name", "fsx_lustre_security_group", "region")
def existing_lustre_requires_mount_name_and_group(plan: PlanValues) -> Iterator[Problem]:
    describe = f"aws fsx describe-file-systems --region {plan.region} --file-system-ids {plan.file_systems.fsx_lustre}"
    for key, fix in (
        ("fsx_lustre_mount_name", f"specify LustreConfiguration.MountName from: {describe}"),
        (
            "fsx_lustre_security_group",
            f"specify a security group of the network interfaces in NetworkInterfaceIds from: {describe}",
        ),
    ):
        is_set, is_existing = setting_value(plan, key) is not None, isinstance(plan.file_systems.fsx_lustre, str)
        if is_existing and not is_set:
            yield Problem(key=key, got=None, allowed=SETTINGS[key].form.allowed, fix=fix)
        if is_set and not is_existing:
            yield _requires_existing(plan, "fsx_lustre", key)


@rule("efs", "efs_security_group")
def efs_security_group_requires_existing_efs(plan: PlanValues) -> Iterator[Problem]:
    if plan.file_systems.efs_security_group is not None and plan.file_systems.efs in (None, NEW_EFS):
        yield _requires_existing(plan, "efs", "efs_security_group")


def _requires_existing(plan: PlanValues, file_system: str, key: str) -> Problem:
    setting = SETTING_PREFIX + file_system
    fix = f"set {setting} too, or remove {SETTING_PREFIX}{key}"
    if setting_value(plan, file_system) is not None:
        fix = "remove it: a new file system has its own"
    allowed = f"nothing unless {setting} is the ID of a file system"
    return Problem(key=key, got=setting_value(plan, key), allowed=allowed, fix=fix)


@rule("fsx_lustre", "efs", "efs_security_group", "vpc_id")
def existing_file_system_requires_existing_vpc(plan: PlanValues) -> Iterator[Problem]:
    """An EFS file system without a mount target is not in a VPC yet, and can be mounted in a new VPC."""
    if plan.network.vpc_id is not None:
        return
    for key, is_in_a_vpc in (
        ("fsx_lustre", isinstance(plan.file_systems.fsx_lustre, str)),
        ("efs", plan.file_systems.efs_security_group is not None),
    ):
        if is_in_a_vpc:
            yield Problem(
                key=key,
                got=setting_value(plan, key),
                allowed="a new file system in a new VPC, which has no route to an existing file system",
                fix="set trn:vpc_id and trn:subnet_id to the network of the file system",
            )


@rule("file_systems_at_destroy", "fsx_lustre", "vpc_id")
def retained_lustre_requires_existing_vpc(plan: PlanValues) -> Iterator[Problem]:
    file_systems = plan.file_systems
    if file_systems.at_destroy == "retain" and isinstance(file_systems.fsx_lustre, int) and plan.network.vpc_id is None:
        yield Problem(
            key="file_systems_at_destroy",
            got=file_systems.at_destroy,
            allowed="destroy for a new FSx for Lustre file system in a new VPC: its subnet could not be deleted",
            fix="set trn:vpc_id and trn:subnet_id to an existing network, or keep the data in S3 or EFS",
        )


@rule("file_systems_at_destroy", "fsx_lustre", "efs")
def file_systems_at_destroy_requires_new(plan: PlanValues) -> Iterator[Problem]:
    file_systems = plan.file_systems
    if (
        file_systems.at_destroy == "retain"
        and not isinstance(file_systems.fsx_lustre, int)
        and file_systems.efs != NEW_EFS
    ):
        yield Problem(
            key="file_systems_at_destroy",
            got=file_systems.at_destroy,
            allowed="no value without a new file system",
            fix="remove it: an existing file system is never deleted",
        )

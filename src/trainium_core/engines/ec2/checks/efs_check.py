"""Whether the nodes can mount the plan's EFS file system, new or existing."""

from collections.abc import Iterator

from trainium_core.aws.account import AwsAccount
from trainium_core.aws.storage import EfsFileSystem, MountTarget
from trainium_core.engines.ec2.checks.place import check_file_system_dns, check_region_service, node_zone_id
from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_core.plan.settings.file_systems import NEW_EFS
from trainium_core.preflight.finding import worst_result
from trainium_runtime.check_result import CheckResult

_USABLE = "available"


def check_efs(plan: Plan, account: AwsAccount) -> CheckResult | None:
    """Check the file system and its mount target; None for a plan without EFS."""
    if plan.file_systems.efs is None:
        return None
    results = [*check_file_system_dns(plan, account)]
    if plan.file_systems.efs == NEW_EFS:
        results.append(check_region_service("EFS", facts()["efs"]["service"], plan, account, setting="efs"))
    else:
        results += _judge(plan, plan.file_systems.efs, account)
    return worst_result(results)


def _judge(plan: Plan, file_system_id: str, account: AwsAccount) -> Iterator[CheckResult]:
    file_system = account.storage.efs_file_system(file_system_id)
    if file_system is None:
        text = f"no {file_system_id} in {plan.region} that this account can access"
        yield CheckResult(outcome="fail", found=text, fix=f"set trn:efs to another, or to {NEW_EFS}")
        return
    text = f"{file_system_id} is {file_system.state}"
    if file_system.state != _USABLE:
        yield CheckResult(outcome="fail", found=text, needed=_USABLE, fix="wait, or check it in the EFS console")
        return
    yield CheckResult(outcome="pass", found=text)
    zone = node_zone_id(plan, account)
    others = [target for target in file_system.mount_targets if plan.cluster_name not in target.clusters]
    if plan.file_systems.efs_security_group is None:
        yield from _new_mount_target(plan, file_system, others, zone)
    else:
        yield from _existing_mount_target(plan, file_system, others, zone)


def _existing_mount_target(
    plan: Plan, file_system: EfsFileSystem, others: list[MountTarget], zone: str
) -> Iterator[CheckResult]:
    here = [
        target for target in file_system.mount_targets if (target.zone_id, target.vpc_id) == (zone, plan.network.vpc_id)
    ]
    if not here:
        text = f"{file_system.file_system_id} has no mount target in {zone} of {plan.network.vpc_id}, so its name "
        text += "does not resolve there"
        obstacles = [*_new_mount_target(plan, file_system, others, zone)]
        fix = "" if obstacles else "remove trn:efs_security_group: the stack then creates a mount target"
        yield CheckResult(outcome="fail", found=text, fix=fix)
        yield from obstacles
        return
    (target,) = here
    if target.state != _USABLE:
        text = f"the mount target of {file_system.file_system_id} in {zone} is {target.state}"
        yield CheckResult(outcome="fail", found=text, needed=_USABLE, fix="wait until it is available")
    elif plan.file_systems.efs_security_group not in target.security_group_ids:
        groups = " or ".join(sorted(target.security_group_ids))
        wanted = plan.file_systems.efs_security_group
        text = f"the mount target of {file_system.file_system_id} in {zone} is not in the security group {wanted}"
        yield CheckResult(outcome="fail", found=text, fix=f"set trn:efs_security_group to {groups}")
    else:
        yield CheckResult(outcome="pass", found=f"its mount target in {zone} is available")


def _new_mount_target(
    plan: Plan, file_system: EfsFileSystem, others: list[MountTarget], zone: str
) -> Iterator[CheckResult]:
    """What prevents a new mount target. `others` are mount targets that the cluster did not create."""
    if file_system.only_zone_id not in (None, zone):
        text = f"{file_system.file_system_id} is only in {file_system.only_zone_id}, and the nodes are in {zone}"
        yield CheckResult(outcome="fail", found=text, fix="set trn:efs to another, or use the zone of the file system")
    elsewhere = {target.vpc_id for target in others if target.vpc_id != plan.network.vpc_id}
    if elsewhere:
        vpc = " and ".join(sorted(elsewhere))
        text = f"{file_system.file_system_id} has mount targets in {vpc}, and EFS allows them in only one VPC"
        fix = f"set trn:vpc_id to {vpc}, and trn:subnet_id with it, or delete these mount targets"
        yield CheckResult(outcome="fail", found=text, fix=fix)
    for target in others:
        if target.zone_id == zone and target.vpc_id == plan.network.vpc_id:
            groups = " or ".join(sorted(target.security_group_ids))
            text = f"{file_system.file_system_id} already has a mount target in {zone}, and cannot have a second"
            yield CheckResult(outcome="fail", found=text, fix=f"set trn:efs_security_group to {groups}")

"""Whether the nodes can mount the plan's FSx for Lustre file system, new or existing."""

from collections.abc import Iterator

from trainium_core.aws.account import AwsAccount
from trainium_core.aws.storage import FsxFileSystem
from trainium_core.engines.ec2.checks.place import check_file_system_dns, check_region_service, node_zone_id
from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_core.preflight.finding import worst_result
from trainium_runtime.check_result import CheckResult

_LUSTRE = "LUSTRE"
_USABLE = ("AVAILABLE", "UPDATING")


def check_lustre(plan: Plan, account: AwsAccount) -> CheckResult | None:
    """Check the file system; None for a plan without FSx for Lustre."""
    if plan.file_systems.fsx_lustre is None:
        return None
    results = [*check_file_system_dns(plan, account)]
    if isinstance(plan.file_systems.fsx_lustre, int):
        service = facts()["fsx_lustre"]["service"]
        results.append(check_region_service("FSx for Lustre", service, plan, account, setting="fsx_lustre"))
    else:
        results += _judge(plan, plan.file_systems.fsx_lustre, account)
    return worst_result(results)


def _judge(plan: Plan, file_system_id: str, account: AwsAccount) -> Iterator[CheckResult]:
    file_system = account.storage.fsx_file_system(file_system_id)
    if file_system is None:
        text = f"no {file_system_id} in {plan.region} that this account can access"
        yield CheckResult(
            outcome="fail", found=text, fix="set trn:fsx_lustre to another, or to the size of a new one in GiB"
        )
        return
    if file_system.kind != _LUSTRE:
        text = f"{file_system_id} is an FSx file system of type {file_system.kind}, not {_LUSTRE}"
        yield CheckResult(outcome="fail", found=text, fix="set trn:fsx_lustre to another")
        return
    yield from _state(file_system)
    yield from _place(plan, file_system, account)
    yield from _settings(plan, file_system)


def _state(file_system: FsxFileSystem) -> Iterator[CheckResult]:
    text = f"{file_system.file_system_id} is {file_system.state}"
    if file_system.state in _USABLE:
        yield CheckResult(outcome="pass", found=text)
    else:
        yield CheckResult(outcome="fail", found=text, needed=_USABLE[0], fix="wait, or check it in the FSx console")


def _place(plan: Plan, file_system: FsxFileSystem, account: AwsAccount) -> Iterator[CheckResult]:
    if file_system.vpc_id != plan.network.vpc_id:
        text = f"{file_system.file_system_id} is in {file_system.vpc_id}, not in {plan.network.vpc_id}"
        yield CheckResult(
            outcome="fail", found=text, fix=f"set trn:vpc_id to {file_system.vpc_id}, and trn:subnet_id with it"
        )
        return
    if file_system.subnet_id == plan.network.subnet_id:
        return
    nodes, subnet = node_zone_id(plan, account), account.network.subnet(file_system.subnet_id)
    if subnet is None:
        yield CheckResult(
            outcome="unknown", found=f"the zone of {file_system.subnet_id}, the file system's subnet, is unknown"
        )
    elif subnet.zone_id != nodes:
        text = f"{file_system.file_system_id} is in {subnet.zone_id}, and the nodes are in {nodes}: "
        text += "traffic between zones is slower, and billed by the GB"
        yield CheckResult(
            outcome="warn", found=text, fix=f"choose a subnet in {subnet.zone_id}, if that zone offers the type"
        )


def _settings(plan: Plan, file_system: FsxFileSystem) -> Iterator[CheckResult]:
    settings = plan.file_systems
    if file_system.mount_name != settings.fsx_lustre_mount_name:
        name = file_system.mount_name
        text = f"the mount name of {file_system.file_system_id} is {name}, not {settings.fsx_lustre_mount_name}"
        yield CheckResult(outcome="fail", found=text, fix=f"set trn:fsx_lustre_mount_name to {name}")
    if settings.fsx_lustre_security_group not in file_system.security_group_ids:
        groups = " or ".join(sorted(file_system.security_group_ids)) or "a group that you add"
        text = f"{file_system.file_system_id} is not in the security group {settings.fsx_lustre_security_group}"
        yield CheckResult(outcome="fail", found=text, fix=f"set trn:fsx_lustre_security_group to {groups}")

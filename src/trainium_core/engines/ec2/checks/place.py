"""The zone of the nodes, and two requirements of file systems: the service in the region, and DNS in the VPC."""

from collections.abc import Iterator

from trainium_core.aws.account import AwsAccount
from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_runtime.check_result import CheckResult
from trainium_runtime.errors import UnavailableError


def node_zone_id(plan: Plan, account: AwsAccount) -> str:
    """The Availability Zone ID of the nodes.

    Raises:
        UnavailableError: The existing subnet is not found, or a request failed or was denied.
    """
    zone_id = plan.zone_id
    if plan.network.subnet_id is not None:
        subnet = account.network.subnet(plan.network.subnet_id)
        zone_id = subnet.zone_id if subnet else None
    if zone_id is None:
        raise UnavailableError(f"the zone of the nodes is unknown: no {plan.network.subnet_id} in {plan.region}")
    return zone_id


def check_region_service(name: str, service: str, plan: Plan, account: AwsAccount, *, setting: str) -> CheckResult:
    """Whether AWS lists the service in the region.

    AWS does not publish which zones have the service, so the result is a warning even if the region has it.

    Args:
        name: The service in messages.
        service: Its name in the SSM parameters of AWS's global infrastructure.
        plan: The plan.
        account: Reads the parameter.
        setting: Key of the setting that requires the service.
    """
    parameter = facts()["services_of_a_region"]["parameter"].format(region=plan.region, service=service)
    if account.parameter(parameter) is None:
        found = f"AWS lists no {name} in {plan.region}"
        return CheckResult(outcome="fail", found=found, fix=f"remove trn:{setting}, or choose another region")
    found = f"{plan.region} has {name}; whether the nodes' zone has it is known only at deployment"
    return CheckResult(outcome="warn", found=found)


def check_file_system_dns(plan: Plan, account: AwsAccount) -> Iterator[CheckResult]:
    """Whether nodes can resolve the DNS names of file systems. Yields nothing if they can, and for a new VPC.

    The Amazon DNS server requires both DNS settings of the VPC. A new VPC has them.
    """
    if plan.network.vpc_id is None:
        return
    vpc = account.network.vpc(plan.network.vpc_id)
    if vpc is None:
        found = f"no {plan.network.vpc_id} in {plan.region}"
        yield CheckResult(outcome="fail", found=found, fix="set trn:vpc_id to another")
        return
    off = [
        setting
        for setting, on in (("enableDnsSupport", vpc.dns_support), ("enableDnsHostnames", vpc.dns_hostnames))
        if not on
    ]
    if off:
        both = " and ".join(off)
        found = f"{vpc.vpc_id} has {both} turned off: nodes cannot resolve the DNS names of file systems"
        yield CheckResult(outcome="fail", found=found, fix=f"turn on {both}")

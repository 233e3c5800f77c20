"""What every file system needs where the nodes are: a region that has the service, and names that are resolved."""

from collections.abc import Iterator

from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_core.preflight.account import Account
from trainium_runtime.check_result import CheckResult


def region_has(name: str, service: str, plan: Plan, account: Account, *, setting: str) -> CheckResult:
    """Whether AWS lists the service in the region. Which zones have it is nowhere to be asked: that is a warning."""
    parameter = facts()["services_of_a_region"]["parameter"].format(region=plan.region, service=service)
    if account.parameter(parameter) is None:
        found = f"AWS lists no {name} in {plan.region}"
        return CheckResult(outcome="fail", found=found, fix=f"leave trn:{setting} out, or choose another region")
    found = f"{plan.region} has {name}; that the nodes' zone has it shows when one is made"
    return CheckResult(outcome="warn", found=found)


def names_of_file_systems(plan: Plan, account: Account) -> Iterator[CheckResult]:
    """Nodes mount by name, which AWS's resolver knows in a VPC that has both kinds of DNS; a new VPC has them."""
    if plan.network.vpc_id is None:
        return
    vpc = account.vpc(plan.network.vpc_id)
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
        found = f"{both} is off in {vpc.vpc_id}: nodes cannot find file systems by their names"
        yield CheckResult(outcome="fail", found=found, fix=f"turn {both} on")

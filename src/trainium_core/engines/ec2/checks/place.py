"""The zone of the nodes, and what file systems need there: a region with the service, and DNS."""

from collections.abc import Iterator

from trainium_core.facts import facts
from trainium_core.images.image import Images
from trainium_core.network.vpc import Network
from trainium_core.plan import Plan
from trainium_runtime.check_result import CheckResult
from trainium_runtime.errors import UnavailableError


def zone_of_the_nodes(plan: Plan, account: Network) -> str:
    """Its id; the subnet's in a VPC of the user's own. Raises UnavailableError when there is no such subnet."""
    zone_id = plan.zone_id
    if plan.network.subnet_id is not None:
        subnet = account.subnet(plan.network.subnet_id)
        zone_id = subnet.zone_id if subnet else None
    if zone_id is None:
        raise UnavailableError(f"the zone of the nodes is unknown: no {plan.network.subnet_id} in {plan.region}")
    return zone_id


def region_has(name: str, service: str, plan: Plan, account: Images, *, setting: str) -> CheckResult:
    """Whether AWS lists the service in the region. Which zones have it is nowhere to be asked: that is a warning."""
    parameter = facts()["services_of_a_region"]["parameter"].format(region=plan.region, service=service)
    if account.parameter(parameter) is None:
        found = f"AWS lists no {name} in {plan.region}"
        return CheckResult(outcome="fail", found=found, fix=f"leave trn:{setting} out, or choose another region")
    found = f"{plan.region} has {name}; whether the nodes' zone has it is known only at deployment"
    return CheckResult(outcome="warn", found=found)


def names_of_file_systems(plan: Plan, account: Network) -> Iterator[CheckResult]:
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

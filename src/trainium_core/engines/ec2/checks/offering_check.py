"""Whether the zone of the nodes offers their type."""

from trainium_core.aws.account import AwsAccount
from trainium_core.plan import Plan
from trainium_runtime.check_result import CheckResult


def check_offering(plan: Plan, account: AwsAccount) -> CheckResult:
    zone_id = plan.zone_id
    if plan.network.subnet_id is not None:
        subnet = account.network.subnet(plan.network.subnet_id)
        if subnet is None:
            found = f"no {plan.network.subnet_id} in {plan.region}"
            return CheckResult(
                outcome="fail", found=found, fix=f"set trn:subnet_id to a subnet of {plan.network.vpc_id}"
            )
        zone_id = subnet.zone_id
        if plan.availability_zone_id not in (None, zone_id):
            found = f"{plan.network.subnet_id} is in {zone_id}, not in {plan.availability_zone_id}"
            return CheckResult(
                outcome="fail", found=found, fix=f"set trn:availability_zone_id to {zone_id}, or remove it"
            )
    offering = account.network.zones_offering(plan.instance_type)
    if zone_id in offering:
        found = f"{zone_id} offers {plan.instance_type}, but capacity is not guaranteed"
        return CheckResult(outcome="pass", found=found)
    key = "subnet_id to a subnet in" if plan.network.subnet_id is not None else "availability_zone_id to"
    other_zone = f"set trn:{key} {' or '.join(sorted(offering))}, or " if offering else ""
    elsewhere = f"zones of {plan.region} that do: {', '.join(sorted(offering)) or 'none'}"
    found = f"{zone_id} does not offer {plan.instance_type}; {elsewhere}"
    return CheckResult(outcome="fail", found=found, fix=f"{other_zone}choose another type")

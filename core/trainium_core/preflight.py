"""What stands between a plan and its deployment in one account: findings, each with what to do about it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from trainium_core.account import Account, CannotTellError, RunningInstance
from trainium_core.naming import BOOTSTRAP_STACK_NAME, STACK_NAME
from trainium_core.plan import Plan
from trainium_core.quota import QuotaNeed, quota_need

_STEADY = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE")
"""States in which CloudFormation takes an update of a stack."""

Outcome = Literal["pass", "warn", "fail", "unknown"]
Verdict = Literal["ready", "not ready", "could not tell"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The answer to one question. `fix` is empty when there is nothing to do."""

    check: str
    outcome: Outcome
    found: str
    fix: str = ""


def preflight(plan: Plan, account: Account) -> tuple[Finding, ...]:
    """Ask the account everything. Without an identity nothing else is asked: it would fail for the same reason."""
    identity = _ask("identity", _identity, plan, account)
    if identity.outcome == "unknown":
        return (identity, *(Finding(check=name, outcome="unknown", found="not asked") for name in _CHECKS))
    return (identity, *(_ask(name, check, plan, account) for name, check in _CHECKS.items()))


def verdict(findings: Iterable[Finding]) -> Verdict:
    """A warning does not stand in the way; what is unknown is never ready."""
    outcomes = {finding.outcome for finding in findings}
    if "fail" in outcomes:
        return "not ready"
    return "ready" if outcomes and outcomes <= {"pass", "warn"} else "could not tell"


_Answer = tuple[Outcome, str, str]
_Check = Callable[[Plan, Account], _Answer]


def _ask(name: str, check: _Check, plan: Plan, account: Account) -> Finding:
    try:
        outcome, found, fix = check(plan, account)
    except CannotTellError as error:
        outcome, found, fix = "unknown", str(error), ""
    return Finding(check=name, outcome=outcome, found=found, fix=fix)


def _identity(plan: Plan, account: Account) -> _Answer:
    identity = account.identity()
    elsewhere = f", answered by {identity.endpoint} and not by AWS" if identity.endpoint else ""
    return "pass", f"account {identity.account}, region {plan.region}, as {identity.arn}{elsewhere}", ""


def _quota(plan: Plan, account: Account) -> _Answer:
    if plan.capacity == "reservation":
        return "pass", "reserved capacity counted against the quota when it was reserved", ""
    if plan.capacity == "capacity-block":
        return "warn", "no source says whether a Capacity Block counts against the on-demand quota", ""
    need = quota_need(plan)
    if need is None:
        return "unknown", f"no source says which quota {plan.instance_type} counts against", ""
    return judge_quota(
        need,
        limit=account.quota_limit(need.code),
        running=account.running_instances(plan.type.family),
        capacity=plan.capacity,
        cluster=plan.cluster_name,
    )


def judge_quota(
    need: QuotaNeed, *, limit: float, running: Sequence[RunningInstance], capacity: str, cluster: str
) -> _Answer:
    """Whether a quota has room. The cluster's own running nodes are part of the need, so they are not counted twice."""
    others = [instance for instance in running if instance.cluster != cluster]
    used = sum(instance.vcpus for instance in others if instance.capacity == capacity)
    in_blocks = sum(i.vcpus for i in others if i.capacity == "capacity-block") if capacity == "on-demand" else 0
    found = f"needs {need.vcpus} vCPUs; {limit - used:g} of {limit:g} are free of {need.code}, {need.name}"
    if need.vcpus <= limit - used - in_blocks:
        return "pass", found, ""
    fix = f"ask Service Quotas for {used + need.vcpus} or more, or for fewer nodes"
    if need.vcpus <= limit - used:
        return "unknown", f"{found}; {in_blocks} more run in Capacity Blocks, which may count as well", fix
    return "fail", found, fix


def _offering(plan: Plan, account: Account) -> _Answer:
    zone_id = plan.zone_id
    if plan.vpc_id is not None and plan.subnet_id is not None:
        zone_id = account.subnet_zone(subnet_id=plan.subnet_id, vpc_id=plan.vpc_id)
        if zone_id is None:
            return (
                "fail",
                f"no {plan.subnet_id} in {plan.vpc_id} in {plan.region}",
                "set trn:subnet_id to one of its own",
            )
        if plan.availability_zone_id not in (None, zone_id):
            fix = f"set trn:availability_zone_id to {zone_id}, or leave it out"
            return "fail", f"{plan.subnet_id} is in {zone_id}, not in {plan.availability_zone_id}", fix
    offering = account.zones_offering(plan.instance_type)
    if zone_id in offering:
        return "pass", f"{zone_id} offers {plan.instance_type}, which is no promise that one is free", ""
    elsewhere = f"in {plan.region} these zones do: {', '.join(sorted(offering)) or 'none'}"
    return "fail", f"{zone_id} does not offer {plan.instance_type}; {elsewhere}", "choose another zone, or another type"


def _image(plan: Plan, account: Account) -> _Answer:
    image_id = account.parameter(plan.ami) if plan.ami_is_parameter else plan.ami
    if image_id is None:
        return "fail", f"no SSM parameter {plan.ami} in {plan.region}", "set trn:ami to another one, or to an AMI id"
    image = account.image(image_id)
    if image is None:
        return "fail", f"no image {image_id} in {plan.region} that this account may see", "set trn:ami to another one"
    if image.state != "available":
        return "fail", f"{image_id} is {image.state}", "wait, or set trn:ami to another image"
    if image.root_device_name != plan.root_device_name:
        fix = f"set trn:root_device_name to {image.root_device_name}"
        return "fail", f"the root device of {image_id} is {image.root_device_name}, not {plan.root_device_name}", fix
    if image.root_volume_gib > plan.root_volume_gib:
        fix = f"set trn:root_volume_gib to {image.root_volume_gib} or more"
        return "fail", f"{image_id} takes {image.root_volume_gib} GiB, more than {plan.root_volume_gib}", fix
    return "pass", f"{image_id} is available", ""


def _bootstrap(plan: Plan, account: Account) -> _Answer:
    status = account.stack_status(BOOTSTRAP_STACK_NAME)
    fix = f"run: cdk bootstrap aws://{account.identity().account}/{plan.region}"
    if status is None:
        return "fail", f"there is no stack {BOOTSTRAP_STACK_NAME}", fix
    if status not in _STEADY:
        return "fail", f"{BOOTSTRAP_STACK_NAME} is in {status}", fix
    return "pass", f"{BOOTSTRAP_STACK_NAME} is there", ""


def _stack(_plan: Plan, account: Account) -> _Answer:
    status = account.stack_status(STACK_NAME)
    if status in (None, "REVIEW_IN_PROGRESS"):
        return "pass", f"{STACK_NAME} is not there yet", ""
    if status in _STEADY:
        return "pass", f"{STACK_NAME} is there ({status}) and will be updated", ""
    if status == "ROLLBACK_COMPLETE":
        return (
            "warn",
            f"{STACK_NAME} failed to be made before (ROLLBACK_COMPLETE): cdk deploy deletes the rest first",
            "",
        )
    if status.endswith("_IN_PROGRESS"):
        return "fail", f"{STACK_NAME} is in {status}", "wait until that has ended"
    return "fail", f"{STACK_NAME} is in {status}", f"run: cdk rollback {STACK_NAME}, or cdk destroy {STACK_NAME}"


_CHECKS: dict[str, _Check] = {
    "quota": _quota,
    "offering": _offering,
    "image": _image,
    "bootstrap": _bootstrap,
    "stack": _stack,
}

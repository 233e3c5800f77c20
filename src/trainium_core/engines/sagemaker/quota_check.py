"""Whether SageMaker's quotas allow a training job's instances, run time and volume.

AWS does not document the codes of its quotas for instance types, so their names identify them.
"""

from collections.abc import Iterator

from trainium_core.aws.account import AwsAccount
from trainium_core.engines.sagemaker.jobs.job import on_spot
from trainium_core.engines.sagemaker.jobs.request import volume_gib
from trainium_core.facts import facts, training_facts
from trainium_core.plan import Plan
from trainium_core.preflight.finding import worst_result
from trainium_runtime.check_result import CheckResult
from trainium_runtime.quota import Quota, Quotas

SERVICE = "sagemaker"
_SECONDS_PER_HOUR = 3600


def check_training_quota(plan: Plan, account: AwsAccount) -> CheckResult:
    quotas = account.quotas
    return worst_result([_instances(plan, quotas), *_run_time(plan, quotas), *_volume(plan, quotas)])


def instance_quota(plan: Plan, quotas: Quotas) -> tuple[str, Quota | None]:
    """The name of the quota for the plan's instances, and the quota; None if SageMaker has none.

    Raises:
        UnavailableError: A request failed or was denied.
    """
    known = facts()["sagemaker_quotas"]
    usage = known["usages"]["spot-training-job" if on_spot(plan) else "training-job"]
    name = f"ml.{plan.instance_type} for {usage}"
    return name, _quota(name, known["codes"].get(name), quotas)


def _quota(name: str, code: str | None, quotas: Quotas) -> Quota | None:
    """The quota of this name. A known code saves paging through a thousand quotas, if the name is still the same."""
    known = quotas.quota(SERVICE, code) if code else None
    if known and known.name == name:
        return known
    return quotas.quota_named(SERVICE, name)


def _instances(plan: Plan, quotas: Quotas) -> CheckResult:
    """Whether the quota allows the plan's instances, as if none were in use."""
    needed = f"{plan.nodes} instance{'s' if plan.nodes > 1 else ''}"
    name, quota = instance_quota(plan, quotas)
    if quota is None:
        return CheckResult(outcome="unknown", found=f"SageMaker in {plan.region} lists no quota {name}", needed=needed)
    found = f"the quota {quota.code}, {name}, is {quota.limit:g} in {plan.region}"
    if plan.nodes <= quota.limit:
        return CheckResult(outcome="pass", found=f"{found}; instances in use are not subtracted", needed=needed)
    fix = f"request {plan.nodes} for {quota.code} (service sagemaker) from Service Quotas"
    if quota.limit >= 1:
        fix += f", or set trn:nodes to {quota.limit:g}"
    return CheckResult(outcome="fail", found=found, needed=needed, fix=fix)


def _run_time(plan: Plan, quotas: Quotas) -> Iterator[CheckResult]:
    limits, hours = training_facts()["quotas"], plan.sagemaker.max_runtime_hours
    quota = _quota(limits["longest_run"], limits["longest_run_code"], quotas)
    if quota is None:
        yield CheckResult(outcome="warn", found=f"SageMaker lists no quota {limits['longest_run']}")
    elif hours > (longest := quota.limit / _SECONDS_PER_HOUR):
        fix = (
            f"set trn:sagemaker_max_runtime_hours to {longest:g} or less, or request an increase of {quota.code}, "
            "which is in seconds, from Service Quotas"
        )
        yield CheckResult(outcome="fail", found=f"a job may run {longest:g} h", needed=f"{hours:g} h", fix=fix)


def _volume(plan: Plan, quotas: Quotas) -> Iterator[CheckResult]:
    limits, size = training_facts()["quotas"], volume_gib(plan)
    quota = _quota(limits["volume"], limits["volume_code"], quotas)
    if quota is None:
        yield CheckResult(outcome="warn", found=f"SageMaker lists no quota {limits['volume']}")
    elif size > quota.limit:
        found = f"the quota {quota.code}, {limits['volume']}, allows {quota.limit:g} GB"
        fix = f"set trn:root_volume_gib to {quota.limit:g} or less, or request an increase of {quota.code}"
        # No source says whether the quota applies to types with local disks, which get no volume.
        outcome = "warn" if plan.type.nvme_disks else "fail"
        yield CheckResult(outcome=outcome, found=found, needed=f"{size} GB", fix=fix)

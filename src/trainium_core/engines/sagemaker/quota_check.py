"""Whether SageMaker's quotas allow a training job's instances, run time and volume."""

from collections.abc import Iterator

from trainium_core.engines.sagemaker.jobs.job import on_spot
from trainium_core.engines.sagemaker.jobs.request import volume_gib
from trainium_core.facts import training_facts
from trainium_core.plan import Plan
from trainium_core.preflight.finding import worst_of
from trainium_core.quotas.sagemaker import check_instance_quota, quota_of_sagemaker
from trainium_runtime.check_result import CheckResult
from trainium_runtime.quota import Quotas

_SECONDS_PER_HOUR = 3600


def check_training_quota(plan: Plan, account: Quotas) -> CheckResult:
    usage = "spot-training-job" if on_spot(plan) else "training-job"
    instances = check_instance_quota(plan, plan.instance_type, usage, plan.nodes, account)
    return worst_of([instances, *_run_time(plan, account), *_volume(plan, account)])


def _run_time(plan: Plan, account: Quotas) -> Iterator[CheckResult]:
    facts, hours = training_facts()["quotas"], plan.sagemaker.max_runtime_hours
    quota = quota_of_sagemaker(facts["longest_run"], facts["longest_run_code"], account)
    if quota is None:
        yield CheckResult(outcome="warn", found=f"SageMaker lists no quota {facts['longest_run']}")
    elif hours > (longest := quota.limit / _SECONDS_PER_HOUR):
        fix = (
            f"set trn:sagemaker_max_runtime_hours to {longest:g} or less, or request an increase of {quota.code}, "
            "which is in seconds, from Service Quotas"
        )
        yield CheckResult(outcome="fail", found=f"a job may run {longest:g} h", needed=f"{hours:g} h", fix=fix)


def _volume(plan: Plan, account: Quotas) -> Iterator[CheckResult]:
    facts, size = training_facts()["quotas"], volume_gib(plan)
    quota = quota_of_sagemaker(facts["volume"], facts["volume_code"], account)
    if quota is None:
        yield CheckResult(outcome="warn", found=f"SageMaker lists no quota {facts['volume']}")
    elif size > quota.limit:
        found = f"the quota {quota.code}, {facts['volume']}, allows {quota.limit:g} GB"
        fix = f"set trn:root_volume_gib to {quota.limit:g} or less, or request an increase of {quota.code}"
        # No source says whether the quota applies to types with local disks, which get no volume.
        outcome = "warn" if plan.type.nvme_disks else "fail"
        yield CheckResult(outcome=outcome, found=found, needed=f"{size} GB", fix=fix)

"""Whether SageMaker's quotas let a training job have its instances, its warm pool, its time and its volume."""

from collections.abc import Iterator

from trainium_core.engines.sagemaker.jobs.job import TrainingJob
from trainium_core.engines.sagemaker.jobs.request import volume_gib
from trainium_core.facts import training_facts
from trainium_core.plan import Plan
from trainium_core.preflight.finding import worst_of
from trainium_core.quotas.sagemaker import check_instance_quota, quota_of_sagemaker
from trainium_runtime.check_result import CheckResult
from trainium_runtime.quota import Quotas

_SECONDS_PER_HOUR = 3600


def check_job_quota(plan: Plan, job: TrainingJob, account: Quotas) -> CheckResult:
    return worst_of([*_instances(plan, job, account), _run_time(job, account), _volume(plan, account)])


def _instances(plan: Plan, job: TrainingJob, account: Quotas) -> Iterator[CheckResult]:
    if job.training_plan_arn is not None:
        yield CheckResult(outcome="pass", found="the instances of a training plan were counted when it was bought")
        return
    usages = ["spot-training-job" if job.on_spot(plan) else "training-job"]
    usages += ["warm-pool"] if job.warm_pool_minutes else []
    for usage in usages:
        yield check_instance_quota(plan, plan.instance_type, usage, plan.nodes, account)


def _run_time(job: TrainingJob, account: Quotas) -> CheckResult:
    facts = training_facts()["quotas"]
    quota = quota_of_sagemaker(facts["longest_run"], facts["longest_run_code"], account)
    if quota is None:
        return CheckResult(outcome="warn", found=f"SageMaker lists no quota {facts['longest_run']}")
    hours = quota.limit / _SECONDS_PER_HOUR
    if job.max_hours <= hours:
        return CheckResult(outcome="pass", found=f"a job may run {hours:g} h")
    fix = f"give --max-hours {hours:g} or less, or ask Service Quotas for more of {quota.code}, in seconds"
    return CheckResult(outcome="fail", found=f"a job may run {hours:g} h", needed=f"{job.max_hours:g} h", fix=fix)


def _volume(plan: Plan, account: Quotas) -> CheckResult:
    facts, size = training_facts()["quotas"], volume_gib(plan)
    quota = quota_of_sagemaker(facts["volume"], facts["volume_code"], account)
    if quota is None:
        return CheckResult(outcome="warn", found=f"SageMaker lists no quota {facts['volume']}")
    found = f"a volume may have {quota.limit:g} GB by {quota.code}, {facts['volume']}"
    if size <= quota.limit:
        return CheckResult(outcome="pass", found=found)
    fix = f"set trn:root_volume_gib to {quota.limit:g} or less"
    if plan.type.nvme_disks:
        found += f"; {plan.instance_type} has disks of its own and gets no volume: no source says whether it counts"
        return CheckResult(outcome="warn", found=found, needed=f"{size} GB", fix=fix)
    return CheckResult(outcome="fail", found=found, needed=f"{size} GB", fix=fix)

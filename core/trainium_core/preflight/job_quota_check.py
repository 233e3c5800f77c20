"""Whether SageMaker's quotas let a training job have its instances, its warm pool and its time."""

from collections.abc import Iterator

from trainium_core.account import Quota, Quotas
from trainium_core.plan import Plan
from trainium_core.preflight.finding import Answer, worst_of
from trainium_core.sagemaker.job import TrainingJob
from trainium_core.sagemaker.training_facts import training_facts
from trainium_core.sagemaker_quota import SERVICE, sagemaker_quota, sagemaker_quota_name

_NOT_COUNTED = "what runs already is not counted"


def check_job_quota(plan: Plan, job: TrainingJob, account: Quotas) -> Answer:
    return worst_of([*_instances(plan, job, account), _run_time(job, account)])


def _instances(plan: Plan, job: TrainingJob, account: Quotas) -> Iterator[Answer]:
    if job.training_plan_arn is not None:
        yield Answer(outcome="pass", found="the instances of a training plan were counted when it was bought")
        return
    usages = ["spot-training-job" if job.on_spot(plan) else "training-job"]
    usages += ["warm-pool"] if job.warm_pool_minutes else []
    for usage in usages:
        name = sagemaker_quota_name(plan.instance_type, usage)
        yield _room(plan, name, sagemaker_quota(plan.instance_type, usage, account))


def _room(plan: Plan, name: str, quota: Quota | None) -> Answer:
    needed = f"{plan.nodes} instance{'s' if plan.nodes > 1 else ''}"
    if quota is None:
        return Answer(outcome="unknown", found=f"SageMaker in {plan.region} lists no quota {name}", needed=needed)
    found = f"{quota.limit:g} by {quota.code}, {name}, in {plan.region}"
    if plan.nodes <= quota.limit:
        return Answer(outcome="pass", found=f"{found}; {_NOT_COUNTED}", needed=needed)
    fix = f"ask Service Quotas for {plan.nodes} of {quota.code} (service sagemaker)"
    if quota.limit >= 1:
        fix += f", or set trn:nodes to {quota.limit:g}"
    return Answer(outcome="fail", found=found, needed=needed, fix=fix)


def _run_time(job: TrainingJob, account: Quotas) -> Answer:
    facts = training_facts()["quotas"]
    known = account.quota(SERVICE, facts["longest_run_code"])
    quota = (
        known if known and known.name == facts["longest_run"] else account.quota_named(SERVICE, facts["longest_run"])
    )
    if quota is None:
        return Answer(outcome="warn", found=f"SageMaker lists no quota {facts['longest_run']}")
    hours = quota.limit / 3600
    if job.max_hours <= hours:
        return Answer(outcome="pass", found=f"a job may run {hours:g} h")
    fix = f"give --max-hours {hours:g} or less, or ask Service Quotas for more of {quota.code}, in seconds"
    return Answer(outcome="fail", found=f"a job may run {hours:g} h", needed=f"{job.max_hours:g} h", fix=fix)

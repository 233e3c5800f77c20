"""Whether SageMaker's quotas allow the instances of the HyperPod cluster, as if none were in use."""

from collections.abc import Iterator

from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_core.preflight.finding import worst_of
from trainium_core.quotas.sagemaker import check_instance_quota, quota_of_sagemaker
from trainium_runtime.check_result import CheckResult
from trainium_runtime.quota import Quotas

_USAGE = "cluster"


def check_hyperpod(plan: Plan, account: Quotas) -> CheckResult:
    return worst_of(_results(plan, account))


def _results(plan: Plan, account: Quotas) -> Iterator[CheckResult]:
    hyperpod = plan.hyperpod
    if hyperpod.training_plan is None:
        yield check_instance_quota(plan, plan.instance_type, _USAGE, plan.nodes, account)
    controllers = 1 if hyperpod.orchestrator == "slurm" else 0
    if controllers:
        controller = hyperpod.controller_type.removeprefix("ml.")
        yield check_instance_quota(plan, controller, _USAGE, controllers, account)
    quotas = facts()["hyperpod"]["quotas"]
    for key in ("per_cluster", "all_clusters"):
        yield _all_instances(plan.nodes + controllers, quotas[key], quotas[f"{key}_code"], account)


def _all_instances(count: int, name: str, code: str, account: Quotas) -> CheckResult:
    quota = quota_of_sagemaker(name, code, account)
    needed = f"{count} instances"
    if quota is None:
        return CheckResult(outcome="unknown", found=f"SageMaker lists no quota {name}", needed=needed)
    found = f"the quota {quota.code}, {name}, is {quota.limit:g}"
    if count <= quota.limit:
        return CheckResult(outcome="pass", found=found, needed=needed)
    fix = f"request {count} for {quota.code} (service sagemaker) from Service Quotas"
    return CheckResult(outcome="fail", found=found, needed=needed, fix=fix)

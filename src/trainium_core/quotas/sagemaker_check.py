"""Whether a quota of SageMaker has room for so many instances of a type."""

from trainium_core.plan import Plan
from trainium_core.quotas.sagemaker import sagemaker_quota, sagemaker_quota_name
from trainium_runtime.check_result import CheckResult
from trainium_runtime.quota import Quotas

_NOT_COUNTED = "what runs already is not counted"


def check_instance_quota(plan: Plan, instance_type: str, usage: str, count: int, account: Quotas) -> CheckResult:
    """By the quota for a usage, such as training-job. Raises UnavailableError."""
    needed = f"{count} instance{'s' if count > 1 else ''}"
    name, quota = sagemaker_quota_name(instance_type, usage), sagemaker_quota(instance_type, usage, account)
    if quota is None:
        return CheckResult(outcome="unknown", found=f"SageMaker in {plan.region} lists no quota {name}", needed=needed)
    found = f"{quota.limit:g} by {quota.code}, {name}, in {plan.region}"
    if count <= quota.limit:
        return CheckResult(outcome="pass", found=f"{found}; {_NOT_COUNTED}", needed=needed)
    fix = f"ask Service Quotas for {count} of {quota.code} (service sagemaker)"
    if quota.limit >= 1 and count == plan.nodes:
        fix += f", or set trn:nodes to {quota.limit:g}"
    return CheckResult(outcome="fail", found=found, needed=needed, fix=fix)

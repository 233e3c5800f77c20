"""SageMaker's quotas for instance types. AWS does not document their codes, so their names identify them."""

from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_runtime.check_result import CheckResult
from trainium_runtime.quota import Quota, Quotas

SERVICE = "sagemaker"


def sagemaker_quota_name(instance_type: str, usage: str) -> str:
    """The name of a quota, such as `ml.trn1.32xlarge for training job usage`.

    Args:
        instance_type: Type without the prefix `ml.`.
        usage: A key of sagemaker_quotas.usages in facts.toml, such as training-job.
    """
    return f"ml.{instance_type} for {facts()['sagemaker_quotas']['usages'][usage]}"


def sagemaker_quota(instance_type: str, usage: str, account: Quotas) -> Quota | None:
    """The quota for a usage of an instance type; None if SageMaker has none.

    A known code saves paging through a thousand quotas. It is used only if the quota still has the expected name.

    Raises:
        UnavailableError: A request failed or was denied.
    """
    name = sagemaker_quota_name(instance_type, usage)
    return quota_of_sagemaker(name, facts()["sagemaker_quotas"]["codes"].get(name), account)


def quota_of_sagemaker(name: str, code: str | None, account: Quotas) -> Quota | None:
    """The quota of this name, looked up by its code first, if the code is known. Raises UnavailableError."""
    known = account.quota(SERVICE, code) if code else None
    if known and known.name == name:
        return known
    return account.quota_named(SERVICE, name)


def check_instance_quota(plan: Plan, instance_type: str, usage: str, count: int, account: Quotas) -> CheckResult:
    """Check whether the quota for a usage, such as training-job, allows `count` instances, as if none were in use.

    Raises:
        UnavailableError: A request failed or was denied.
    """
    needed = f"{count} instance{'s' if count > 1 else ''}"
    name, quota = sagemaker_quota_name(instance_type, usage), sagemaker_quota(instance_type, usage, account)
    if quota is None:
        return CheckResult(outcome="unknown", found=f"SageMaker in {plan.region} lists no quota {name}", needed=needed)
    found = f"the quota {quota.code}, {name}, is {quota.limit:g} in {plan.region}"
    if count <= quota.limit:
        return CheckResult(outcome="pass", found=f"{found}; instances in use are not subtracted", needed=needed)
    fix = f"request {count} for {quota.code} (service sagemaker) from Service Quotas"
    if quota.limit >= 1 and count == plan.nodes:
        fix += f", or set trn:nodes to {quota.limit:g}"
    return CheckResult(outcome="fail", found=found, needed=needed, fix=fix)

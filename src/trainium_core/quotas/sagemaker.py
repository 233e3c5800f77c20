"""SageMaker's quotas for an instance type, in instances: found by name, since AWS publishes no codes."""

from trainium_core.facts import facts
from trainium_runtime.quota import Quota, Quotas

SERVICE = "sagemaker"


def sagemaker_usages() -> tuple[str, ...]:
    """What instances can be used for, each under a quota of its own, such as training-job."""
    return tuple(facts()["sagemaker_quotas"]["usages"])


def sagemaker_quota_name(instance_type: str, usage: str) -> str:
    """The name of a quota, such as `ml.trn1.32xlarge for training job usage`."""
    return f"ml.{instance_type} for {facts()['sagemaker_quotas']['usages'][usage]}"


def sagemaker_quota(instance_type: str, usage: str, account: Quotas) -> Quota | None:
    """The quota for a usage of an instance type; None when SageMaker has none. Raises UnavailableError.

    A code that is known saves paging through a thousand quotas; it is believed only while it still has the name.
    """
    name = sagemaker_quota_name(instance_type, usage)
    return quota_of_sagemaker(name, facts()["sagemaker_quotas"]["codes"].get(name), account)


def quota_of_sagemaker(name: str, code: str | None, account: Quotas) -> Quota | None:
    """The quota of that name, looked for by its code first if one is known. Raises UnavailableError."""
    known = account.quota(SERVICE, code) if code else None
    if known and known.name == name:
        return known
    return account.quota_named(SERVICE, name)

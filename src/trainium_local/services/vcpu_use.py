"""How many vCPUs of a quota the instances here use, and the refusal of a launch that goes over."""

from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPES

from trainium_local.seeds.vcpu_quotas import VcpuQuota, quota_for
from trainium_local.services.errors import refusal
from trainium_local.services.launch_request import ON_DEMAND

# EC2 documentation, Reserved Instance quotas: what is stopping or has ended counts no more.
COUNTED_STATES = ("pending", "running")
# Which quota a Capacity Block counts against, if any, is not documented: it is not held against one here.
LIMITED_MARKETS = (ON_DEMAND, "spot")


def refuse_over_quota(backend: Any, *, instance_type: str, market: str, count: int) -> None:
    """Raise AWS's error when `count` more instances would go over the quota of their family and market."""
    quota = quota_for(instance_type, market) if market in LIMITED_MARKETS else None
    if quota is None or vcpus_used(backend, quota) + count * _vcpus(instance_type) <= quota.applied:
        return
    raise refusal("spot-limit") if market == "spot" else refusal("vcpu-limit", limit=quota.applied)


def vcpus_used(backend: Any, quota: VcpuQuota) -> int:
    """By what runs in a region, as its EC2 backend has it."""
    return sum(
        _vcpus(instance.instance_type)
        for instance in backend.all_instances()
        if instance.state in COUNTED_STATES
        and quota_for(instance.instance_type, instance.lifecycle or ON_DEMAND) == quota
    )


def _vcpus(instance_type: str) -> int:
    return INSTANCE_TYPES[instance_type]["VCpuInfo"]["DefaultVCpus"]

"""What the account may run, what of it is used, and what more it has asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class UsageMetric:
    """Where CloudWatch keeps AWS's own count of what is used of a quota. `statistic` is the one AWS recommends."""

    namespace: str
    name: str
    dimensions: Mapping[str, str]
    statistic: str


@dataclass(frozen=True, kw_only=True)
class Quota:
    """A limit in one region. `is_default`: AWS's default, nothing else has been applied to the account."""

    code: str
    name: str
    limit: float
    is_default: bool = False
    usage_metric: UsageMetric | None = None


@dataclass(frozen=True, kw_only=True)
class QuotaRequest:
    """A request for a higher quota. `status` is AWS's word for where it stands; `case_id` of AWS Support, if any."""

    request_id: str
    desired: float
    status: str
    created: datetime
    updated: datetime | None = None
    case_id: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether it may still be granted. Service Quotas takes no second request for a quota meanwhile."""
        return self.status in ("PENDING", "CASE_OPENED")


@dataclass(frozen=True, kw_only=True)
class RunningInstance:
    """An instance that counts against a quota. `capacity` as in a plan; `cluster` is its tag trn:cluster, if any."""

    vcpus: int
    capacity: str
    cluster: str | None = None


class Quotas(Protocol):
    """`family` is the letters an instance type begins with, such as trn: EC2 counts by family and market."""

    def quota(self, service: str, code: str) -> Quota | None: ...

    def quota_named(self, service: str, name: str) -> Quota | None: ...

    def quota_requests(self, service: str, code: str) -> Sequence[QuotaRequest]: ...

    def metered_use(self, metric: UsageMetric) -> float | None: ...

    def running_instances(self, family: str) -> Sequence[RunningInstance]: ...

    def ended_instances(self, family: str) -> Sequence[RunningInstance]:
        """Those that have stopped to count a short while ago, as far as EC2 still shows them."""
        ...

    def unused_reserved_vcpus(self, family: str) -> int:
        """vCPUs of the account's own On-Demand Capacity Reservations that no instance runs in."""
        ...

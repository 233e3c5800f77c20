"""EC2 quotas: what the account may run, what of it is used, and the arithmetic between that and a need."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from trainium_runtime.quota_need import QuotaNeed


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
    """A request for a higher quota. `status` as Service Quotas names it; `case_id` of AWS Support, if any."""

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


@dataclass(frozen=True, kw_only=True)
class QuotaUse:
    """vCPUs of a quota that are taken by others than the nodes of the cluster itself, which are its `own`.

    running: by instances. reserved: by Capacity Reservations that no instance runs in. unseen: by whatever AWS's own
    metric counts beyond these, such as open spot requests. in_blocks: by instances in Capacity Blocks, which may or may
    not count: no source says.
    """

    running: int = 0
    reserved: int = 0
    unseen: float = 0
    in_blocks: int = 0
    own: int = 0

    @property
    def certain(self) -> float:
        return self.running + self.reserved + self.unseen


def quota_use(
    need: QuotaNeed, *, instances: Sequence[RunningInstance], reserved: int = 0, metered: float = 0, ended: int = 0
) -> QuotaUse:
    """What is used, from what runs and is reserved now, and from what AWS's usage metric said minutes ago.

    What runs now counts, and what the metric has beyond it: the metric alone lags behind both launches and ends, and
    the instances alone do not show everything that counts. `ended` vCPUs were running when the metric was taken, so
    they explain a part of it. The cluster's own nodes are part of the need and of the metric, not of the use.
    """
    on_market = [instance for instance in instances if instance.capacity == need.capacity]
    running = sum(instance.vcpus for instance in on_market if instance.cluster != need.cluster)
    own = sum(instance.vcpus for instance in on_market) - running
    blocks = [i for i in instances if i.capacity == "capacity-block"] if need.capacity == "on-demand" else []
    explained = running + own + reserved + ended + sum(instance.vcpus for instance in blocks)
    return QuotaUse(
        running=running,
        reserved=reserved,
        unseen=max(0, metered - explained),
        in_blocks=sum(instance.vcpus for instance in blocks if instance.cluster != need.cluster),
        own=own,
    )


@dataclass(frozen=True, kw_only=True)
class QuotaState:
    """A need beside the quota it counts against. `requests`: open requests for more, if they were read."""

    need: QuotaNeed
    quota: Quota
    use: QuotaUse
    requests: tuple[QuotaRequest, ...] = ()

    @property
    def free(self) -> float:
        return max(0, self.quota.limit - self.use.certain)

    @property
    def has_room(self) -> bool:
        return self.use.certain + self.need.vcpus <= self.quota.limit

    @property
    def has_room_whatever_counts(self) -> bool:
        return self.sufficient_limit <= self.quota.limit

    @property
    def sufficient_limit(self) -> float:
        """The smallest limit with room for certain: what to ask for when there is none."""
        return self.use.certain + self.use.in_blocks + self.need.vcpus

    @property
    def nodes_that_fit(self) -> int:
        """How many nodes there is room for."""
        return int(max(0, self.free - self.use.in_blocks) // self.need.vcpus_per_node)

    @property
    def open_request(self) -> QuotaRequest | None:
        return next((request for request in self.requests if request.is_open), None)

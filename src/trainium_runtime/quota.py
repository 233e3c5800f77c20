"""EC2 quotas: limit, usage, and the arithmetic between these and a need."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from trainium_runtime.quota_need import QuotaNeed


@dataclass(frozen=True, kw_only=True)
class UsageMetric:
    """The CloudWatch metric with AWS's count of a quota's usage.

    Attributes:
        statistic: The statistic that AWS recommends.
    """

    namespace: str
    name: str
    dimensions: Mapping[str, str]
    statistic: str


@dataclass(frozen=True, kw_only=True)
class Quota:
    """A limit in one region.

    Attributes:
        is_default: Whether the limit is AWS's default, without an applied value of the account.
    """

    code: str
    name: str
    limit: float
    is_default: bool = False
    usage_metric: UsageMetric | None = None


@dataclass(frozen=True, kw_only=True)
class QuotaRequest:
    """A request for a higher quota.

    Attributes:
        status: Status in Service Quotas.
        case_id: Case of AWS Support, if any.
    """

    request_id: str
    desired: float
    status: str
    created: datetime
    updated: datetime | None = None
    case_id: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether it may still be granted. While it is open, Service Quotas accepts no second request for the quota."""
        return self.status in ("PENDING", "CASE_OPENED")


@dataclass(frozen=True, kw_only=True)
class RunningInstance:
    """An instance that counts, or recently counted, against a quota.

    Attributes:
        capacity: As in a plan.
        cluster: Value of its tag trn:cluster, if any.
    """

    vcpus: int
    capacity: str
    cluster: str | None = None


class Quotas(Protocol):
    """Reads quotas and what counts against them.

    EC2 counts by family or generation of instance types, such as trn or p5, and by purchase option.
    """

    def quota(self, service: str, code: str) -> Quota | None: ...

    def quota_named(self, service: str, name: str) -> Quota | None: ...

    def quota_requests(self, service: str, code: str) -> Sequence[QuotaRequest]: ...

    def metered_use(self, metric: UsageMetric) -> float | None: ...

    def running_instances(self, family: str) -> Sequence[RunningInstance]:
        """Running and pending instances."""
        ...

    def ended_instances(self, family: str) -> Sequence[RunningInstance]:
        """Instances that recently ceased to count, if EC2 still lists them."""
        ...

    def unused_reserved_vcpus(self, family: str) -> int:
        """Unused vCPUs of the account's On-Demand Capacity Reservations."""
        ...


@dataclass(frozen=True, kw_only=True)
class QuotaUse:
    """Used vCPUs of a quota.

    Attributes:
        running: Used by instances, without the cluster's own nodes.
        reserved: Used by unused Capacity Reservations.
        unseen: What AWS's metric counts in addition, such as open Spot Instance requests.
        in_blocks: Used by instances in Capacity Blocks. It is not documented whether these count.
        own: Used by the cluster's own nodes.
    """

    running: int = 0
    reserved: int = 0
    unseen: float = 0
    in_blocks: int = 0
    own: int = 0

    @property
    def certain(self) -> float:
        """What certainly counts, without the cluster's own nodes."""
        return self.running + self.reserved + self.unseen


def quota_use(
    need: QuotaNeed, *, instances: Sequence[RunningInstance], reserved: int = 0, metered: float = 0, ended: int = 0
) -> QuotaUse:
    """The usage, from current instances and reservations, and from AWS's usage metric of minutes ago.

    The usage is the vCPUs of instances and reservations, and what the metric has in addition: the metric lags behind
    launches and terminations, and includes more than instances, such as open Spot Instance requests. The cluster's own
    nodes are part of the need and of the metric, not of the usage.

    Args:
        instances: Instances that count, including the cluster's own nodes.
        reserved: vCPUs of unused Capacity Reservations.
        metered: The latest value of the metric.
        ended: vCPUs of recently ended instances, which the metric may still include. They are subtracted from it.
    """
    same_capacity = [instance for instance in instances if instance.capacity == need.capacity]
    running = sum(instance.vcpus for instance in same_capacity if instance.cluster != need.cluster)
    own = sum(instance.vcpus for instance in same_capacity) - running
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
    """A need and the quota it counts against.

    Attributes:
        requests: Increase requests, open and closed, if they were read.
    """

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
    def fits_in_worst_case(self) -> bool:
        return self.sufficient_limit <= self.quota.limit

    @property
    def sufficient_limit(self) -> float:
        """The smallest limit that is certainly sufficient, to request if the quota has no room."""
        return self.use.certain + self.use.in_blocks + self.need.vcpus

    @property
    def nodes_that_fit(self) -> int:
        """The number of nodes that the quota certainly has room for."""
        return int(max(0, self.free - self.use.in_blocks) // self.need.vcpus_per_node)

    @property
    def open_request(self) -> QuotaRequest | None:
        return next((request for request in self.requests if request.is_open), None)

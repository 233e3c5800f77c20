"""Quotas in memory. By default an idle account with quota for two trn1.32xlarge."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from trainium_runtime.errors import UnavailableError
from trainium_runtime.quota import Quota, QuotaRequest, RunningInstance, UsageMetric

ON_DEMAND = "L-2C3B7624"
METRIC = UsageMetric(
    namespace="AWS/Usage",
    name="ResourceCount",
    dimensions={"Class": "Trn/OnDemand", "Resource": "vCPU", "Service": "EC2", "Type": "Resource"},
    statistic="Maximum",
)


_FAMILIES = ("trn", "p")


@dataclass(kw_only=True)
class FakeQuotas:
    """Quotas, and their use by instances.

    Attributes:
        unavailable: Names of the calls that fail.
        limit: Limit of every EC2 quota; None if the quotas do not exist.
        sagemaker: SageMaker's quotas, by code, or by name for a quota whose code is unknown.
    """

    unavailable: Collection[str] = ()
    limit: float | None = 256
    is_default: bool = False
    metered: float | None = None
    running: Sequence[RunningInstance] = ()
    ended: Sequence[RunningInstance] = ()
    reserved: int = 0
    requests: Sequence[QuotaRequest] = ()
    sagemaker: Mapping[str, Quota] = field(default_factory=dict[str, Quota])

    @property
    def quotas(self) -> Self:
        return self

    def _check_available(self, question: str) -> None:
        if question in self.unavailable:
            raise UnavailableError(f"no answer about {question}")

    def quota(self, service: str, code: str) -> Quota | None:
        assert code.startswith("L-")
        self._check_available("quota")
        if service == "sagemaker":
            return self.sagemaker.get(code)
        if self.limit is None:
            return None
        return Quota(code=code, name="x", limit=self.limit, is_default=self.is_default, usage_metric=METRIC)

    def quota_named(self, service: str, name: str) -> Quota | None:
        assert service == "sagemaker"
        self._check_available("names")
        return self.sagemaker.get(name)

    def quota_requests(self, service: str, code: str) -> Sequence[QuotaRequest]:
        assert (service, code[:2]) == ("ec2", "L-")
        self._check_available("requests")
        return self.requests

    def metered_use(self, metric: UsageMetric) -> float | None:
        assert metric == METRIC
        self._check_available("metric")
        return self.metered

    def running_instances(self, family: str) -> Sequence[RunningInstance]:
        assert family in _FAMILIES
        self._check_available("instances")
        return self.running

    def ended_instances(self, family: str) -> Sequence[RunningInstance]:
        assert family in _FAMILIES
        self._check_available("ended")
        return self.ended

    def unused_reserved_vcpus(self, family: str) -> int:
        assert family in _FAMILIES
        self._check_available("reservations")
        return self.reserved

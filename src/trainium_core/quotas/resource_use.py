"""The use of the quotas in the section `limits` of facts.toml, and of AWS PCS clusters."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

GIB_PER_TIB = 1024


@dataclass(frozen=True, kw_only=True)
class UsedAmount:
    """The amount of something that a quota limits.

    Attributes:
        amount: The counted amount.
        complete: Whether everything was counted.
    """

    amount: float
    complete: bool = True


class ResourceUse(Protocol):
    """The use of quotas in one region. Methods raise UnavailableError.

    Methods whose names end in `_excluding` count the resources without the tag trn:cluster of the cluster.
    """

    def elastic_ips_excluding(self, cluster: str) -> UsedAmount: ...

    def nat_gateways_excluding(self, cluster: str, *, zone_id: str | None) -> UsedAmount:
        """Gateways in a zone, with all regional ones, or in the whole region if zone_id is None."""
        ...

    def gp3_tib_excluding(self, cluster: str) -> UsedAmount: ...

    def network_interfaces_excluding(self, cluster: str) -> UsedAmount: ...

    def pcs_clusters(self) -> Collection[str]:
        """The names of all AWS PCS clusters of the region."""
        ...

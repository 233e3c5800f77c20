"""The use of quotas other than those of instances: the limits of the facts."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

GIB_PER_TIB = 1024


@dataclass(frozen=True, kw_only=True)
class Use:
    """The amount of something that a quota limits. `complete`: false if counting stopped before the end."""

    amount: float
    complete: bool = True


class ResourceUse(Protocol):
    """Methods count resources without the cluster's tag trn:cluster."""

    def elastic_ips_excluding(self, cluster: str) -> Use: ...

    def nat_gateways_excluding(self, cluster: str, *, zone_id: str | None) -> Use:
        """Gateways in a zone; in the whole region if zone_id is None."""
        ...

    def gp3_tib_excluding(self, cluster: str) -> Use: ...

    def network_interfaces_excluding(self, cluster: str) -> Use: ...

    def pcs_clusters(self) -> Collection[str]:
        """The names of all AWS PCS clusters of the region."""
        ...

"""What is used of the quotas on what a plan makes beside instances: the limits of the facts."""

from dataclasses import dataclass
from typing import Protocol

GIB_PER_TIB = 1024


@dataclass(frozen=True, kw_only=True)
class Use:
    """How much there is of something that a quota limits. `complete`: false if counting stopped before the end."""

    amount: float
    complete: bool = True


class ResourceUse(Protocol):
    """Each counts what does not carry the tag trn:cluster with the name of the cluster."""

    def elastic_ips_excluding(self, cluster: str) -> Use: ...

    def nat_gateways_excluding(self, cluster: str, *, zone_id: str | None) -> Use:
        """Those of a zone; of the whole region where it is None."""
        ...

    def gp3_tib_excluding(self, cluster: str) -> Use: ...

    def network_interfaces_excluding(self, cluster: str) -> Use: ...

    def gateway_endpoints_excluding(self, cluster: str) -> Use: ...

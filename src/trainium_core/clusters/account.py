"""What a list of clusters asks of an account in one region."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from trainium_core.facts import facts
from trainium_core.identity.caller import Identities
from trainium_core.nodes.fleet import DeployedFleet
from trainium_core.prices.price import Prices

_STEADY = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE")


@dataclass(frozen=True, kw_only=True)
class ClusterStack:
    """A stack that carries the tag trn:cluster, or whose resources do.

    engine: as trn:stacks calls it; None for a stack of an app of one's own. asleep: None where it knows no sleep.
    ends: when the pilot ends, None where nothing ends it. has_nodes: whether the Auto Scaling group of the nodes is in
    it.
    """

    name: str
    cluster: str
    status: str
    engine: str | None = None
    asleep: bool | None = None
    ends: datetime | None = None
    has_nodes: bool = False

    @property
    def is_steady(self) -> bool:
        """Whether it neither changes nor needs attention."""
        return self.status in _STEADY


@dataclass(frozen=True, kw_only=True)
class ClusterNode:
    """An instance that carries the tag trn:cluster and is not terminated.

    state: as EC2 calls it. product: of the price list, such as `spot`. stack: that made it, if a tag says so.
    """

    instance_id: str
    cluster: str
    instance_type: str
    state: str
    product: str
    zone_id: str = ""
    stack: str | None = None

    @property
    def compiles_ahead(self) -> bool:
        """Whether it is the host of `trn precompile`: nodes are of other types."""
        return self.instance_type in facts()["precompile"]["hosts"]


@dataclass(frozen=True, kw_only=True)
class ClusterStacks:
    """not_read: what may be of a cluster and could not be read, each with the reason."""

    stacks: Sequence[ClusterStack]
    not_read: Sequence[str] = ()


class LocatingAccount(Protocol):
    """Each method raises UnavailableError without an answer."""

    def cluster_stacks(self) -> ClusterStacks:
        """The stacks of every cluster, whatever they are called and whichever app made them."""
        ...

    def fleet(self, stack: ClusterStack) -> DeployedFleet | None:
        """The cluster's nodes in a stack, by its template."""
        ...


class ClustersAccount(LocatingAccount, Identities, Prices, Protocol):
    """Each method raises UnavailableError without an answer."""

    def cluster_nodes(self) -> Sequence[ClusterNode]: ...

    def enabled_regions(self) -> Sequence[str]:
        """The regions that the account may use."""
        ...

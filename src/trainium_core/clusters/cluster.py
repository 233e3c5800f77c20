"""The clusters of a region: stacks, nodes, state and cost."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Protocol

from trainium_core.aws.identity import Identity
from trainium_core.costs.estimate import Total
from trainium_core.facts import facts
from trainium_core.prices.price import CAPACITY_BLOCK, PricedItem, Prices, PriceTable
from trainium_core.prices.quotes import quotes
from trainium_core.stacks.deployed_stack import STABLE_STATUSES


@dataclass(frozen=True, kw_only=True)
class ClusterStack:
    """A cluster in a stack that has a record of it, or the tag trn:cluster, or resources with it.

    Attributes:
        engine: The key of its engine in trn:stacks; None without a record.
        asleep: Whether it sleeps; None if it cannot.
        ends: End of the pilot; None if it has no end.
        has_nodes: Whether it has the cluster's nodes, according to its record.
        has_record: Whether it has a record. Without one, it is being created or deleted, or that failed.
        project: ID of the project that deployed it, if any.
    """

    name: str
    cluster: str
    status: str
    engine: str | None = None
    asleep: bool | None = None
    ends: datetime | None = None
    has_nodes: bool = False
    has_record: bool = True
    project: str | None = None

    @property
    def is_steady(self) -> bool:
        """Whether the stack is not changing and needs no attention."""
        return self.status in STABLE_STATUSES


@dataclass(frozen=True, kw_only=True)
class ClusterNode:
    """An instance that has the tag trn:cluster and is not terminated.

    Attributes:
        state: EC2's state.
        product: Product of the price list, such as `spot`.
        stack: The stack that created it, if a tag names it.
        described: EC2's description.
    """

    instance_id: str
    cluster: str
    instance_type: str
    state: str
    product: str
    zone_id: str = ""
    stack: str | None = None
    described: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False, repr=False)

    @property
    def is_login_node(self) -> bool:
        """Whether it is a login node of Slurm, by its type, which other nodes cannot have."""
        return self.instance_type in facts()["pcs"]["login_types"]


@dataclass(frozen=True, kw_only=True)
class ClusterStacks:
    """The stacks of all clusters.

    Attributes:
        stacks: One for each cluster in each stack.
        not_read: The searches and stacks that could not be read, each with the reason.
        described: CloudFormation's descriptions of all stacks of the region that are not deleted.
        tag_index: The tags of each resource with the tag trn:cluster, by ARN; None if they were not read.
    """

    stacks: Sequence[ClusterStack]
    not_read: Sequence[str] = ()
    described: Sequence[Mapping[str, Any]] = ()
    tag_index: Mapping[str, Mapping[str, str]] | None = None


class ClustersAccount(Prices, Protocol):
    """Methods raise UnavailableError if a request fails or is denied."""

    def identity(self) -> Identity:
        """The identity of the credentials."""
        ...

    def cluster_stacks(self) -> ClusterStacks:
        """The stacks of every cluster, whatever their names and apps."""
        ...

    def cluster_nodes(self) -> Sequence[ClusterNode]:
        """The nodes and login nodes of all clusters."""
        ...

    def enabled_regions(self) -> Sequence[str]:
        """The regions that are enabled for the account."""
        ...


_RUNNING = ("pending", "running")


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """One cluster in one region.

    Attributes:
        nodes: Its nodes and its login node.
        per_hour: Price of the running `nodes` per hour in US dollars, without prepaid Capacity Blocks. Each stack whose
            nodes are not EC2 instances is an unknown amount.
        ends: The earliest end of its stacks; None if none has an end.
    """

    name: str
    region: str
    stacks: tuple[ClusterStack, ...]
    nodes: tuple[ClusterNode, ...]
    per_hour: Total
    ends: datetime | None

    @property
    def state(self) -> str:
        """The statuses of stacks that are changing or need attention; without such stacks, whether there are nodes."""
        unsteady = sorted({stack.status for stack in self.stacks if not stack.is_steady})
        if unsteady:
            return ", ".join(unsteady)
        if not self.stacks:
            return "no stack"
        if self.node_counts:
            return "running"
        return "asleep" if any(stack.asleep for stack in self.stacks) else "no nodes"

    def belongs_to(self, project: str | None) -> bool:
        """Whether the project with this ID deployed it. None is no project."""
        return project is not None and any(stack.project == project for stack in self.stacks)

    @property
    def node_counts(self) -> Mapping[str, int]:
        """Number of nodes by type, without the login node."""
        return Counter(node.instance_type for node in self.nodes if not node.is_login_node)

    @property
    def login_counts(self) -> Mapping[str, int]:
        """Number of login nodes by type."""
        return Counter(node.instance_type for node in self.nodes if node.is_login_node)


@dataclass(frozen=True, kw_only=True)
class Absence:
    """The reason why a cluster has no nodes.

    Attributes:
        why: A clause without a full stop.
        remedy: How to get the nodes back.
    """

    why: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.why}; {self.remedy}"


@dataclass(frozen=True, kw_only=True)
class ClusterList:
    """The clusters of a region.

    Attributes:
        absences: Why clusters have no nodes, by name of the cluster.
        not_read: What could not be read, and why.
        prices_unavailable: Reasons why AWS's prices are unavailable.
    """

    region: str
    clusters: tuple[Cluster, ...]
    absences: Mapping[str, Absence] = field(default_factory=dict[str, Absence])
    not_read: tuple[str, ...] = ()
    prices_unavailable: tuple[str, ...] = ()


def clusters_in(region: str, account: ClustersAccount, *, prices: PriceTable) -> ClusterList:
    """Every cluster of the account in a region, sorted by name.

    Args:
        region: The region.
        account: The account.
        prices: The user's own prices.

    Raises:
        UnavailableError: A request failed or was denied.
    """
    with ThreadPoolExecutor() as threads:
        reading_nodes = threads.submit(account.cluster_nodes)
        cluster_stacks = account.cluster_stacks()
        nodes = reading_nodes.result()
    items = {node.instance_id: _priced(node, region) for node in nodes}
    wanted = (item for item in items.values() if item.product != CAPACITY_BLOCK)
    priced = quotes(wanted, own=prices, aws=account)
    usd = {node: price.usd for node, item in items.items() if (price := priced.prices.get(item)) is not None}
    names = sorted({part.cluster for part in (*cluster_stacks.stacks, *nodes)})
    return ClusterList(
        region=region,
        clusters=tuple(
            _cluster(
                name,
                region,
                [stack for stack in cluster_stacks.stacks if stack.cluster == name],
                [node for node in nodes if node.cluster == name],
                usd,
            )
            for name in names
        ),
        not_read=tuple(cluster_stacks.not_read),
        prices_unavailable=priced.unavailable,
    )


def _cluster(
    name: str,
    region: str,
    stacks: Sequence[ClusterStack],
    nodes: Sequence[ClusterNode],
    usd: Mapping[str, Decimal | None],
) -> Cluster:
    return Cluster(
        name=name,
        region=region,
        stacks=tuple(stacks),
        nodes=tuple(nodes),
        per_hour=_per_hour(nodes, usd),
        ends=min((stack.ends for stack in stacks if stack.ends), default=None),
    )


def _per_hour(nodes: Iterable[ClusterNode], usd: Mapping[str, Decimal | None]) -> Total:
    billed = [node for node in nodes if node.state in _RUNNING and node.product != CAPACITY_BLOCK]
    amounts = [usd.get(node.instance_id) for node in billed]
    known = [amount for amount in amounts if amount is not None]
    return Total(usd=sum(known, Decimal(0)), unknown=len(amounts) - len(known))


def _priced(node: ClusterNode, region: str) -> PricedItem:
    return PricedItem(product=node.product, region=region, instance_type=node.instance_type, zone_id=node.zone_id)

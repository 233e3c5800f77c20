"""What each cluster of a region comes to."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from trainium_core.clusters.account import ClusterNode, ClustersAccount, ClusterStack
from trainium_core.costs.estimate import Total
from trainium_core.engines.registry import ENGINES
from trainium_core.prices.file import snapshot_prices
from trainium_core.prices.price import CAPACITY_BLOCK, PricedItem, PriceTable
from trainium_core.prices.quotes import quotes

_BILLED = ("pending", "running")


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """One cluster in one region.

    nodes: with the host that compiles ahead. per_hour: what they cost now in US dollars, by list price; a Capacity
    Block is paid before. ends: the first end of a stack.
    """

    name: str
    region: str
    stacks: tuple[ClusterStack, ...]
    nodes: tuple[ClusterNode, ...]
    per_hour: Total
    ends: datetime | None

    @property
    def state(self) -> str:
        """In CloudFormation's words while a stack needs attention, or changes; else whether nodes run."""
        unsteady = sorted({stack.status for stack in self.stacks if not stack.is_steady})
        if unsteady:
            return ", ".join(unsteady)
        if not self.stacks:
            return "no stack"
        if self.node_counts:
            return "running"
        return "asleep" if any(stack.asleep for stack in self.stacks) else "no nodes"

    @property
    def node_counts(self) -> Mapping[str, int]:
        """How many of each type, without the host that compiles ahead."""
        return Counter(node.instance_type for node in self.nodes if not node.compiles_ahead)

    @property
    def host_counts(self) -> Mapping[str, int]:
        """How many of each type compile ahead: one, or none."""
        return Counter(node.instance_type for node in self.nodes if node.compiles_ahead)


@dataclass(frozen=True, kw_only=True)
class Absence:
    """why: a sentence without its full stop. way_on: what somebody does who wants the nodes."""

    why: str
    way_on: str

    def __str__(self) -> str:
        return f"{self.why}; {self.way_on}"


@dataclass(frozen=True, kw_only=True)
class ClusterList:
    """absences: why clusters have no nodes, by name. not_read: what of the region could not be read, and why.

    prices_unavailable: why AWS's prices are unavailable.
    """

    region: str
    clusters: tuple[Cluster, ...]
    absences: Mapping[str, Absence] = field(default_factory=dict[str, Absence])
    not_read: tuple[str, ...] = ()
    prices_unavailable: tuple[str, ...] = ()


def clusters_in(region: str, account: ClustersAccount, *, prices: PriceTable) -> ClusterList:
    """Every cluster of the account in a region, by name. prices: the user's own. Raises UnavailableError."""
    with ThreadPoolExecutor() as threads:
        reading_nodes = threads.submit(account.cluster_nodes)
        found = account.cluster_stacks()
        nodes = reading_nodes.result()
    items = {node.instance_id: _priced(node, region) for node in nodes}
    wanted = (item for item in items.values() if item.product != CAPACITY_BLOCK)
    priced = quotes(wanted, own=prices, aws=account, snapshot=snapshot_prices())
    usd = {node: price.usd for node, item in items.items() if (price := priced.prices.get(item)) is not None}
    names = sorted({one.cluster for one in (*found.stacks, *nodes)})
    return ClusterList(
        region=region,
        clusters=tuple(
            _cluster(
                name,
                region,
                [stack for stack in found.stacks if stack.cluster == name],
                [node for node in nodes if node.cluster == name],
                usd,
            )
            for name in names
        ),
        not_read=tuple(found.not_read),
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
        per_hour=_per_hour(nodes, stacks, usd),
        ends=min((stack.ends for stack in stacks if stack.ends), default=None),
    )


def _per_hour(nodes: Iterable[ClusterNode], stacks: Iterable[ClusterStack], usd: Mapping[str, Decimal | None]) -> Total:
    billed = [node for node in nodes if node.state in _BILLED and node.product != CAPACITY_BLOCK]
    amounts = [usd.get(node.instance_id) for node in billed]
    hidden = sum(not ENGINES[stack.engine].ec2_shows_nodes for stack in stacks if stack.engine)
    known = [amount for amount in amounts if amount is not None]
    return Total(usd=sum(known, Decimal(0)), unknown=len(amounts) - len(known) + hidden)


def _priced(node: ClusterNode, region: str) -> PricedItem:
    return PricedItem(product=node.product, region=region, instance_type=node.instance_type, zone_id=node.zone_id)

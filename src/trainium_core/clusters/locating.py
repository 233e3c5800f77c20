"""Groups the stacks of an account by cluster, and derives the plan of a deployed cluster from them."""

from collections.abc import Sequence
from dataclasses import dataclass

from trainium_core.catalog.catalog import builtin_catalog
from trainium_core.clusters.cluster import ClusterStack, ClusterStacks, LocatingAccount
from trainium_core.nodes.fleet import DeployedFleet
from trainium_core.plan import Plan
from trainium_core.problems import PlanError

_MARKETS = ("spot", "capacity-block")


@dataclass(frozen=True, kw_only=True)
class LocatedCluster:
    """A deployed cluster.

    Attributes:
        name: The name of the cluster.
        stacks: Every stack that contains a part of it.
    """

    name: str
    stacks: tuple[ClusterStack, ...]

    @property
    def node_stack(self) -> ClusterStack | None:
        return next((stack for stack in self.stacks if stack.has_nodes), None)


def located(account_stacks: ClusterStacks) -> Sequence[LocatedCluster]:
    """The clusters of the stacks, sorted by name."""
    names = sorted({stack.cluster for stack in account_stacks.stacks})
    return [
        LocatedCluster(name=name, stacks=tuple(stack for stack in account_stacks.stacks if stack.cluster == name))
        for name in names
    ]


def deployed_plan(account: LocatingAccount, cluster: LocatedCluster, region: str) -> Plan:
    """A partial plan of a deployed cluster, from its stacks. Settings such as network and image are not read.

    Args:
        account: The account.
        cluster: The cluster.
        region: The region.

    Returns:
        The plan.

    Raises:
        PlanError: The stacks have values that a plan cannot have.
        UnavailableError: A request failed or was denied.
    """
    stack = cluster.node_stack
    fleet = account.fleet(stack) if stack else None
    if fleet is None or fleet.instance_type is None:
        # The type is not used without nodes: commands find everything by the cluster's name.
        any_type = next(iter((*builtin_catalog().offered_in(region), *builtin_catalog())))
        return Plan.of(region=region, cluster_name=cluster.name, instance_type=any_type)
    return _partial_plan(fleet, region)


def _partial_plan(fleet: DeployedFleet, region: str) -> Plan:
    required = {
        "region": region,
        "stacks": (fleet.engine,),
        "cluster_name": fleet.cluster,
        "instance_type": fleet.instance_type,
        "nodes": max(fleet.nodes, 1),
        "node_recovery": fleet.replacements > 0,
    }
    bought = {"capacity": fleet.market if fleet.market in _MARKETS or not fleet.reservation_id else "reservation"}
    optional = {**bought, "reservation_id": fleet.reservation_id, "node_replacements": fleet.replacements or None}
    optional |= {"ends": fleet.ends, "idle_minutes": fleet.idle_minutes}
    deployed = {key: value for key, value in optional.items() if value is not None}
    try:
        return Plan.of(**required, **deployed)
    except PlanError:
        # The optional settings may need others that are not read.
        return Plan.of(**required)

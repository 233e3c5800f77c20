"""Which stacks are a cluster's: found by tag and by what they made, whatever they are called."""

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
    """A cluster that is there. stacks: every one that has something of it."""

    name: str
    stacks: tuple[ClusterStack, ...]

    @property
    def stack_of_nodes(self) -> ClusterStack | None:
        return next((stack for stack in self.stacks if stack.has_nodes), None)


def located(found: ClusterStacks) -> Sequence[LocatedCluster]:
    """Every cluster that stacks are of, by name."""
    names = sorted({stack.cluster for stack in found.stacks})
    return [
        LocatedCluster(name=name, stacks=tuple(stack for stack in found.stacks if stack.cluster == name))
        for name in names
    ]


def deployed_plan(account: LocatingAccount, cluster: LocatedCluster, region: str) -> Plan:
    """The plan of a cluster, as far as its stacks tell it. Raises PlanError and UnavailableError.

    For commands that work on what is there. The settings of its network, image and the like are not looked up.
    """
    stack = cluster.stack_of_nodes
    fleet = account.fleet(stack) if stack else None
    if fleet is None or fleet.instance_type is None:
        # Nothing of the type is used where there are no nodes: what is asked for is found by the cluster's name.
        any_type = next(iter((*builtin_catalog().offered_in(region), *builtin_catalog())))
        return Plan.of(region=region, cluster_name=cluster.name, instance_type=any_type)
    return _plan_of(fleet, region)


def _plan_of(fleet: DeployedFleet, region: str) -> Plan:
    known = {
        "region": region,
        "cluster_name": fleet.cluster,
        "instance_type": fleet.instance_type,
        "nodes": max(fleet.nodes, 1),
        "node_recovery": fleet.replacements > 0,
    }
    bought = {"capacity": fleet.market if fleet.market in _MARKETS or not fleet.reservation_id else "reservation"}
    more = {**bought, "reservation_id": fleet.reservation_id, "node_replacements": fleet.replacements or None}
    more |= {"ends": fleet.ends, "idle_minutes": fleet.idle_minutes}
    given = {key: value for key, value in more.items() if value is not None}
    try:
        return Plan.of(**known, **given)
    except PlanError:
        # What else its settings were is not known; only these are needed.
        return Plan.of(**known)

"""Finds the stacks of a cluster by tags and resources, whatever their names."""

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
    """A deployed cluster. stacks: every stack that contains a part of it."""

    name: str
    stacks: tuple[ClusterStack, ...]

    @property
    def stack_of_nodes(self) -> ClusterStack | None:
        return next((stack for stack in self.stacks if stack.has_nodes), None)


def located(found: ClusterStacks) -> Sequence[LocatedCluster]:
    """The clusters of the stacks, by name."""
    names = sorted({stack.cluster for stack in found.stacks})
    return [
        LocatedCluster(name=name, stacks=tuple(stack for stack in found.stacks if stack.cluster == name))
        for name in names
    ]


def deployed_plan(account: LocatingAccount, cluster: LocatedCluster, region: str) -> Plan:
    """A partial plan of a cluster, from its stacks. Raises PlanError and UnavailableError.

    For commands on deployed clusters. Settings such as network and image are not read.
    """
    stack = cluster.stack_of_nodes
    fleet = account.fleet(stack) if stack else None
    if fleet is None or fleet.instance_type is None:
        # Without nodes the type is not used: everything is found by the cluster's name.
        any_type = next(iter((*builtin_catalog().offered_in(region), *builtin_catalog())))
        return Plan.of(region=region, cluster_name=cluster.name, instance_type=any_type)
    return _plan_of(fleet, region)


def _plan_of(fleet: DeployedFleet, region: str) -> Plan:
    known = {
        "region": region,
        "stacks": (fleet.engine,),
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
        # The other settings are unknown, and not needed.
        return Plan.of(**known)

"""The clusters of an account, as a table for people and as JSON."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from trainium_cli.layout import Table, Text
from trainium_cli.terminal import table
from trainium_core.clusters.cluster import Absence, Cluster, ClusterList
from trainium_core.plan.pilot_end import minute_text
from trainium_runtime.pilot_end import utc_text

_STYLE = {"running": "green", "asleep": "dim", "no nodes": "dim"}
_COLUMNS = ("Cluster", "Region", "State", "Nodes", "Per hour", "Ends", "Stacks")


def clusters_table(clusters: Sequence[Cluster], *, own: str, now: datetime) -> Table:
    """One row for each cluster. own: name of the plan's cluster, which stands out."""
    rows = [
        (
            Text(cluster.name, style="bold" if cluster.name == own else ""),
            cluster.region,
            Text(cluster.state, style=_STYLE.get(cluster.state, "yellow")),
            _instances(cluster) or "none",
            str(cluster.per_hour),
            _end(cluster, now),
            ", ".join(stack.name for stack in cluster.stacks) or "none",
        )
        for cluster in clusters
    ]
    return table(_COLUMNS, rows, wrapping=("Per hour", "Stacks"))


def lists_as_json(lists: Iterable[ClusterList]) -> dict[str, Any]:
    """Amounts are US dollars for an hour of the nodes; unknown_prices counts what is not in them."""
    found = list(lists)
    return {
        "regions": [one.region for one in found],
        "clusters": [_as_json(cluster, one.absences.get(cluster.name)) for one in found for cluster in one.clusters],
        "not_read": [{"region": one.region, "reason": reason} for one in found for reason in one.not_read],
    }


def _instances(cluster: Cluster) -> str:
    counts = [*cluster.node_counts.items(), *cluster.host_counts.items()]
    return ", ".join(f"{count} x {kind}" for kind, count in counts)


def _as_json(cluster: Cluster, absence: Absence | None) -> dict[str, Any]:
    return {
        "name": cluster.name,
        "region": cluster.region,
        "state": cluster.state,
        "stacks": [{"name": stack.name, "engine": stack.engine, "status": stack.status} for stack in cluster.stacks],
        "nodes": [
            {
                "instance_id": node.instance_id,
                "instance_type": node.instance_type,
                "state": node.state,
                "bought": node.product,
            }
            for node in cluster.nodes
        ],
        "absence": {"why": absence.why, "way_on": absence.way_on} if absence else None,
        "usd_per_hour": cluster.per_hour.usd,
        "unknown_prices": cluster.per_hour.unknown,
        "ends": utc_text(cluster.ends) if cluster.ends else None,
    }


def _end(cluster: Cluster, now: datetime) -> str:
    if cluster.ends is None:
        return "never by itself"
    moment = minute_text(cluster.ends)
    return f"ended {moment}" if cluster.ends <= now else moment

"""The plug-in of trainium_local for AWS Trainium: what the account of a user has, and the nodes of a cluster.

Found by the entry point `trainium` of the group `trainium_local.plugins`. Imports no moto before `start`.
"""

from collections.abc import Mapping
from typing import Any


def seeds(table: str) -> Mapping[str, Any]:
    """Neuron images, and quotas of Trainium types; see trainium_local.plugins.Plugin."""
    from trainium_local_plugin.account import TABLES

    return TABLES[table]() if table in TABLES else {}


def start(*, stand_in_nodes: bool, fail_nodes: int) -> None:
    """Add Capacity Blocks, spot placement scores and HyperPod clusters, and with `stand_in_nodes` play the nodes."""
    from trainium_local import services
    from trainium_local.services import auto_scaling, event_bridge
    from trainium_local_plugin.stand_in_nodes import StandInNodes

    services.replace("trainium_local_plugin")
    if stand_in_nodes:
        nodes = StandInNodes(failing=fail_nodes)
        auto_scaling.when_launched(nodes.launched)
        event_bridge.when_emitted(nodes.told)

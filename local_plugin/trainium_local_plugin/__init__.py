"""The plug-in of trainium_local for AWS Trainium: what an account for it has, the nodes of a cluster, CDK's handlers.

Found by the entry point `trainium` of the group `trainium_local.plugins`. Imports no moto before `start`.
"""

from collections.abc import Callable, Mapping
from typing import Any

CONSOLE_PATH = "/_trn_local/console"
"""PUT CONSOLE_PATH/<instance id>: what whoever plays an instance has on its console."""


def seeds(table: str) -> Mapping[str, Any]:
    """Neuron images, and quotas of Trainium types; see trainium_local.plugins.Plugin."""
    from trainium_local_plugin.account import TABLES

    return TABLES[table]() if table in TABLES else {}


def start(*, stand_in_nodes: bool, fail_nodes: int) -> Mapping[str, Callable[[Any], Any]]:
    """Add what moto lacks for Trainium, and CDK's handlers; with `stand_in_nodes` play what runs on instances."""
    from trainium_local import services
    from trainium_local.cloudformation import signals
    from trainium_local.resources import custom_resource
    from trainium_local.services import auto_scaling, event_bridge, launch_checks
    from trainium_local_plugin import cdk_handlers, console_output, network_cards, stand_in_signals
    from trainium_local_plugin.stand_in_nodes import StandInNodes

    services.replace("trainium_local_plugin")
    custom_resource.when_asked(cdk_handlers.find)
    launch_checks.when_launching(network_cards.refusals)
    if stand_in_nodes:
        nodes = StandInNodes(failing=fail_nodes)
        auto_scaling.when_launched(nodes.launched)
        event_bridge.when_emitted(nodes.told)
        signals.when_created(stand_in_signals.created)
    return {CONSOLE_PATH: console_output.answer}

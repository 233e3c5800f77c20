"""The plug-in of trainium_local for AWS Trainium: the account, what moto lacks for it, stand-ins for nodes.

Also what is no part of AWS: handlers of the CDK, and controls of the clock and of consoles. The entry
point `trainium` of the group `trainium_local.plugins` names it. Imports no moto before `start`.
"""

from collections.abc import Mapping
from typing import Any

from trainium_local.own_paths import WsgiApp, with_own_paths

CLOCK_PATH = "/_trn_local/clock"
"""GET: the time. PUT, with an instant such as 2026-12-01T18:00Z: put the clock forward, and answer once all schedules
that are due by then have run."""
CONSOLE_PATH = "/_trn_local/console"
"""PUT CONSOLE_PATH/<instance id>: what whoever plays an instance has on its console."""


def seeds(table: str) -> Mapping[str, Any]:
    """Neuron images, and quotas of Trainium types; see trainium_local.plugins.Plugin."""
    from trainium_local_plugin.account import TABLES

    return TABLES[table]() if table in TABLES else {}


def start(application: WsgiApp, *, stand_in_nodes: bool, fail_nodes: int) -> WsgiApp:
    """Add what `seeds` does not; with `stand_in_nodes` play what runs on instances."""
    from trainium_local import services
    from trainium_local.cloudformation import signals
    from trainium_local.resources import custom_resource
    from trainium_local.services import auto_scaling, event_bridge, launch_checks
    from trainium_local_plugin import cdk_handlers, clock_control, console_output, network_cards, stand_in_signals
    from trainium_local_plugin.stand_in_jobs import StandInJobs
    from trainium_local_plugin.stand_in_nodes import StandInNodes

    services.replace("trainium_local_plugin")
    custom_resource.register_handlers(cdk_handlers.find)
    launch_checks.when_launching(network_cards.refusals)
    if stand_in_nodes:
        nodes = StandInNodes(failing=fail_nodes)
        auto_scaling.when_launched(nodes.launched)
        clock_control.when_put_forward(nodes.write_usage)
        nodes.keep_writing_usage()
        event_bridge.when_emitted(nodes.handle_event)
        jobs = StandInJobs(nodes.is_proven)
        auto_scaling.when_launched(jobs.launched)
        event_bridge.when_emitted(jobs.handle_event)
        signals.when_created(stand_in_signals.created)
    paths = {CLOCK_PATH: clock_control.answer, CONSOLE_PATH: console_output.answer}
    return with_own_paths(application, paths)

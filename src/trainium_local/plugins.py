"""Plug-ins: what other packages add to the embedded AWS.

A plug-in is a module that an entry point of the group `trainium_local.plugins` names. All that are installed are used.
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Protocol

from trainium_local.own_paths import WsgiApp

GROUP = "trainium_local.plugins"


class Plugin(Protocol):
    """What the module has. It imports no moto before `start` is called: `seeds` is asked for outside the server too."""

    def seeds(self, table: str) -> Mapping[str, Any]:
        """What comes before the rows of seeds/TABLE.toml, in the same form; empty if there is nothing."""
        ...

    def start(self, application: WsgiApp, *, stand_in_nodes: bool, fail_nodes: int) -> WsgiApp:
        """Add the rest to a server that is starting; gives the application of all services, with paths of its own.

        It may replace more of moto (`services.replace`), refuse launches (`launch_checks.when_launching`), listen
        (`auto_scaling.when_launched`, `signals.when_created`, `event_bridge.when_emitted`) and do the work of functions
        of custom resources (`custom_resource.register_handlers`). stand_in_nodes, fail_nodes: see Settings.
        """
        ...


@cache
def plugins() -> tuple[Plugin, ...]:
    """All plug-ins, by the names of their entry points."""
    return tuple(found.load() for found in sorted(entry_points(group=GROUP)))

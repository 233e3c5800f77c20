"""Plug-ins: what other packages add to the embedded AWS.

A plug-in is a module that an entry point of the group `trainium_local.plugins` names. All that are installed are used.
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Protocol

GROUP = "trainium_local.plugins"


class Plugin(Protocol):
    """What the module has. It imports no moto before `start` is called: `seeds` is asked for outside the server too."""

    def seeds(self, table: str) -> Mapping[str, Any]:
        """What comes before the rows of seeds/TABLE.toml, in the same form; empty if there is nothing."""
        ...

    def start(self, *, stand_in_nodes: bool, fail_nodes: int) -> Mapping[str, Callable[[Any], Any]]:
        """Add the rest to a server that is starting, such as `services.replace`, `launch_checks.when_launching`,
        `signals.when_created`, `custom_resource.when_asked`; gives paths below /_trn_local/ and what answers there.

        stand_in_nodes, fail_nodes: see Settings.
        """
        ...


@cache
def plugins() -> tuple[Plugin, ...]:
    """All plug-ins, by the names of their entry points."""
    return tuple(found.load() for found in sorted(entry_points(group=GROUP)))

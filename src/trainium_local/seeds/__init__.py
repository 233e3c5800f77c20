"""What a real account has before anybody deploys: public SSM parameters and machine images, zones, quotas."""

import tomllib
from functools import cache, reduce
from importlib.resources import files
from typing import Any

from trainium_local.plugins import plugins


@cache
def table(name: str) -> dict[str, Any]:
    """NAME.toml of this folder, behind what plug-ins have for it."""
    own = tomllib.loads((files("trainium_local.seeds") / f"{name}.toml").read_text())
    return reduce(_joined, [*(plugin.seeds(name) for plugin in plugins()), own])


def _joined(first: Any, then: Any) -> Any:
    """Both, with the lists and tables of one name joined."""
    if isinstance(first, list):
        return [*first, *then]
    return {**first, **{key: _joined(first[key], value) if key in first else value for key, value in then.items()}}

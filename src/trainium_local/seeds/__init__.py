"""The content of a new account: public SSM parameters, machine images, zones, quotas, offerings."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def table(name: str) -> dict[str, Any]:
    """Read NAME.toml of this folder."""
    return tomllib.loads((files("trainium_local.seeds") / f"{name}.toml").read_text())

"""What a real account has before anybody deploys: public SSM parameters and machine images, zones, quotas."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def table(name: str) -> dict[str, Any]:
    """What NAME.toml of this folder holds."""
    return tomllib.loads((files("trainium_local.seeds") / f"{name}.toml").read_text())

"""The facts in data/facts.toml, read once."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any


@cache
def facts() -> Mapping[str, Any]:
    """All facts by section and key."""
    return tomllib.loads((Path(__file__).parent / "data" / "facts.toml").read_text())

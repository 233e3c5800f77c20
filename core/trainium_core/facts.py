"""The facts of data/facts.toml, read once."""

import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any

from trainium_core.catalog import DATA


@cache
def facts() -> Mapping[str, Any]:
    """Every fact by section and key, as the file has them."""
    return tomllib.loads((DATA / "facts.toml").read_text())

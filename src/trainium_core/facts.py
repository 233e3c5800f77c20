"""The facts of data/facts.toml and those of the runtime, read once."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from trainium_runtime import facts as runtime

DATA = Path(__file__).parent / "data"
"""The folder of the data files that this package ships."""


@cache
def facts() -> Mapping[str, Any]:
    """Every fact by section and key, as the files have them."""
    return {**tomllib.loads((DATA / "facts.toml").read_text()), **runtime.facts()}

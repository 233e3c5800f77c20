"""The facts of the data files, read once."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from trainium_runtime import facts as runtime

DATA = Path(__file__).parent / "data"
"""The folder of this package's data files."""


@cache
def facts() -> Mapping[str, Any]:
    """The facts of data/facts.toml and of trainium_runtime, by section and key."""
    return {**tomllib.loads((DATA / "facts.toml").read_text(encoding="utf-8")), **runtime.facts()}


@cache
def training_facts() -> Mapping[str, Any]:
    """The facts of data/sagemaker_training.toml, by section and key."""
    return tomllib.loads((DATA / "sagemaker_training.toml").read_text(encoding="utf-8"))

"""The facts of data/sagemaker_training.toml, read once."""

import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any

from trainium_core.facts import DATA


@cache
def training_facts() -> Mapping[str, Any]:
    """Every fact by section and key, as the file has them."""
    return tomllib.loads((DATA / "sagemaker_training.toml").read_text(encoding="utf-8"))

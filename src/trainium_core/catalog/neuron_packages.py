"""The Neuron software that a bare node installs: data/neuron_packages.toml, read once."""

import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any

from trainium_core.facts import DATA


@cache
def neuron_packages() -> Mapping[str, Any]:
    """Packages, repositories, keys and the rules of compatibility, as the file has them."""
    return tomllib.loads((DATA / "neuron_packages.toml").read_text())

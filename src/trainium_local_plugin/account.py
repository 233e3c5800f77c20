"""What an account for Trainium has beside any other: quotas and Neuron images, as rows of trainium_local's seeds.

The data are in the TOML files of data/; what the product knows as well is in the facts of trainium_core.
"""

import tomllib
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

from trainium_core.catalog.catalog import builtin_catalog
from trainium_core.facts import facts


@cache
def data(name: str) -> dict[str, Any]:
    """NAME.toml of data/."""
    return tomllib.loads((files("trainium_local_plugin") / "data" / f"{name}.toml").read_text())


def _vcpu_quotas() -> dict[str, Any]:
    """With the codes and names of the facts."""
    return {
        family: {market: {**facts()["quotas"][family][market], **row} for market, row in markets.items()}
        for family, markets in data("vcpu_quotas").items()
    }


def _public_images() -> dict[str, Any]:
    """The Neuron images; where there are no parameters for them, only those that name their regions."""
    neuron, image = data("neuron_images"), facts()["image"]
    regions = [region for region in builtin_catalog().regions if region not in image["regions_without_parameters"]]
    return {
        "family": [
            {
                "regions": regions,
                "created": neuron["created"],
                "owner_id": neuron["owner_id"],
                "root_device_name": image["root_device_name"],
                "before_date": " ",
                "content": f"Neuron SDK {row['neuron_sdk']}. " if "neuron_sdk" in row else "",
                "parameters": [f"{neuron['prefix']}/{row['parameter']}/latest/image_id"] if "parameter" in row else [],
                **row,
            }
            for row in neuron["image"]
        ]
    }


TABLES: dict[str, Callable[[], dict[str, Any]]] = {
    "public_images": _public_images,
    "vcpu_quotas": _vcpu_quotas,
}
"""What there is for the tables of trainium_local.seeds."""

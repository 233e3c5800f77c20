"""Public machine images and their SSM parameters, per region: public_images.toml, neuron_images.toml.

put_parameter refuses names under /aws, as on AWS, so the parameters are put where moto keeps its own public ones.
"""

import hashlib
import itertools
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from typing import Any

from moto.ec2.models.amis import Ami
from moto.ssm.models import Parameter

from trainium_core.catalog.catalog import builtin_catalog
from trainium_core.facts import facts
from trainium_local.seeds import table

NAMESPACE = "/aws/service"


@cache
def public_images(region: str) -> tuple[dict[str, Any], ...]:
    """The images of a region as `Ami` takes them, with the names of their parameters."""
    images = table("public_images")
    every = [*_neuron_families(), *images["family"]]
    families = [family for family in every if region in family.get("regions", (region,))]
    return tuple(_image(row, region) for family in families for row in _expanded({**images["every"], **family}))


def _neuron_families() -> list[dict[str, Any]]:
    """The Neuron images; where there are no parameters for them, only those that name their regions."""
    neuron, image = table("neuron_images"), facts()["image"]
    regions = [region for region in builtin_catalog().regions if region not in image["regions_without_parameters"]]
    return [
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


def load_amis(original: Any, backend: Any) -> None:
    original(backend)
    for image in public_images(backend.region_name):
        described = {name: value for name, value in image.items() if name != "parameters"}
        backend.amis[image["ami_id"]] = Ami(backend, **described)


def check_loading_status(original: Any, parameters: Any, key: str) -> None:
    original(parameters, key)
    if not str(key or "").startswith(NAMESPACE) or vars(parameters).get("public_images_loaded"):
        return
    parameters.public_images_loaded = True
    for image in public_images(parameters.region_name):
        for name in image["parameters"]:
            described = json.dumps({"image_id": image["ami_id"], "image_name": image["name"]})
            parameters[name] = [
                Parameter(
                    account_id=parameters.account_id,
                    name=name,
                    value=described if name.endswith("/recommended") else image["ami_id"],
                    parameter_type="String",
                    description=None,
                    allowed_pattern=None,
                    keyid=None,
                    last_modified_date=image["creation_date"],
                    version=1,
                    data_type="text" if name.endswith("/recommended") else "aws:ec2:image",
                )
            ]


def _expanded(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The row once for each combination of its choices, filled in where its texts name them."""
    axes = [
        [choice if isinstance(choice, dict) else {name: choice} for choice in choices]
        for name, choices in row.get("choices", {}).items()
    ]
    for combination in itertools.product(*axes):
        chosen = {name: value for part in combination for name, value in part.items()}
        parameters = [parameter.format_map(chosen) for parameter in row["parameters"]]
        yield {
            **row,
            "architecture": "x86_64",
            **chosen,
            "name": row["name"].format_map(chosen),
            "parameters": parameters,
        }


def _image(row: dict[str, Any], region: str) -> dict[str, Any]:
    created = datetime.fromisoformat(row["created"]).astimezone(UTC).replace(tzinfo=None)
    name = f"{row['name']}{row['before_date']}{created:%Y%m%d}"
    return {
        "ami_id": "ami-0" + hashlib.sha256(f"{region} {row['name']}".encode()).hexdigest()[:16],
        "name": name,
        "description": f"{row['name']}. {row.get('content', '')}Invented by the embedded AWS.",
        "owner_id": row["owner_id"],
        "owner_alias": "amazon",
        "public": True,
        "virtualization_type": "hvm",
        "architecture": "arm64" if row["architecture"] == "arm64" else "x86_64",
        "creation_date": created,
        "image_location": f"amazon/{name}",
        "hypervisor": "xen",
        "root_device_type": "ebs",
        "root_device_name": row["root_device_name"],
        "parameters": row["parameters"],
    }


def own_parameters(original: Any, *arguments: Any) -> list[Parameter]:
    return [parameter for parameter in original(*arguments) if not parameter.name.startswith("/aws/")]

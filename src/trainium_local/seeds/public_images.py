"""The machine images for Neuron devices and GPUs of each region and their SSM parameters: neuron_images.toml.

put_parameter refuses names below /aws, as on AWS, so the parameters are added to moto's own public ones.
"""

import hashlib
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
    """Return the images of a region as `Ami` expects them, with their parameter names.

    A region without parameters for Neuron images has only the images whose rows name the region.
    """
    neuron, image = table("neuron_images"), facts()["image"]
    with_parameters = [
        region for region in builtin_catalog().regions if region not in image["regions_without_parameters"]
    ]
    return tuple(
        _image(row, neuron, region) for row in neuron["image"] if region in row.get("regions", with_parameters)
    )


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
            parameters[name] = [
                Parameter(
                    account_id=parameters.account_id,
                    name=name,
                    value=image["ami_id"],
                    parameter_type="String",
                    description=None,
                    allowed_pattern=None,
                    keyid=None,
                    last_modified_date=image["creation_date"],
                    version=1,
                    data_type="aws:ec2:image",
                )
            ]


def _image(row: dict[str, Any], neuron: dict[str, Any], region: str) -> dict[str, Any]:
    created = datetime.fromisoformat(row.get("created", neuron["created"])).astimezone(UTC).replace(tzinfo=None)
    name = f"{row['name']} {created:%Y%m%d}"
    content = f"Neuron SDK {row['neuron_sdk']}. " if "neuron_sdk" in row else row.get("content", "")
    return {
        "ami_id": "ami-0" + hashlib.sha256(f"{region} {row['name']}".encode()).hexdigest()[:16],
        "name": name,
        "description": f"{row['name']}. {content}Invented by the embedded AWS.",
        "owner_id": neuron["owner_id"],
        "owner_alias": "amazon",
        "public": True,
        "virtualization_type": "hvm",
        "architecture": "x86_64",
        "creation_date": created,
        "image_location": f"amazon/{name}",
        "hypervisor": "xen",
        "root_device_type": "ebs",
        "root_device_name": row.get("root_device_name", facts()["image"]["root_device_name"]),
        "parameters": _parameters(row, neuron),
    }


def _parameters(row: dict[str, Any], neuron: dict[str, Any]) -> list[str]:
    if "gpu_parameter" in row:
        return [f"{neuron['gpu_prefix']}/{row['gpu_parameter']}/latest/ami-id"]
    return [f"{neuron['prefix']}/{row['parameter']}/latest/image_id"] if "parameter" in row else []


def own_parameters(original: Any, *arguments: Any) -> list[Parameter]:
    return [parameter for parameter in original(*arguments) if not parameter.name.startswith("/aws/")]

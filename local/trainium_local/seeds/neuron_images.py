"""The Neuron Deep Learning AMIs: machine images and their public SSM parameters, per region, from neuron_images.toml.

put_parameter refuses names under /aws, as on AWS, so the parameters are put where moto keeps its own public ones.
"""

import hashlib
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

from moto.ec2.models.amis import Ami, AmiBackend
from moto.ssm.models import Parameter, ParameterDict

from trainium_core.catalog import builtin_catalog
from trainium_core.facts import facts

NAMESPACE = "/aws/service/neuron"

_moto_load_amis = AmiBackend._load_amis
_moto_check_loading_status = ParameterDict._check_loading_status


@dataclass(frozen=True, kw_only=True)
class NeuronImage:
    """One image in one region; `parameter` is the full name of its SSM parameter, or None when it has none."""

    image_id: str
    name: str
    description: str
    owner_id: str
    root_device_name: str
    created: datetime
    parameter: str | None


@cache
def neuron_images(region: str) -> tuple[NeuronImage, ...]:
    """The images of a region; none where no Trainium is offered."""
    data = tomllib.loads((files("trainium_local.seeds") / "neuron_images.toml").read_text())
    with_parameters = [r for r in builtin_catalog().regions if r not in facts()["image"]["regions_without_parameters"]]
    return tuple(_image(row, data, region) for row in data["image"] if region in row.get("regions", with_parameters))


def load_amis(backend: Any) -> None:
    _moto_load_amis(backend)
    for image in neuron_images(backend.region_name):
        backend.amis[image.image_id] = Ami(
            backend,
            image.image_id,
            name=image.name,
            description=image.description,
            owner_id=image.owner_id,
            owner_alias="amazon",
            public=True,
            virtualization_type="hvm",
            architecture="x86_64",
            creation_date=image.created,
            image_location=f"amazon/{image.name}",
            hypervisor="xen",
            root_device_type="ebs",
            root_device_name=image.root_device_name,
        )


def check_loading_status(parameters: Any, key: str) -> None:
    _moto_check_loading_status(parameters, key)
    if not str(key or "").startswith(NAMESPACE) or vars(parameters).get("neuron_images_loaded"):
        return
    parameters.neuron_images_loaded = True
    for image in neuron_images(parameters.region_name):
        if image.parameter:
            parameters[image.parameter] = [
                Parameter(
                    account_id=parameters.account_id,
                    name=image.parameter,
                    value=image.image_id,
                    parameter_type="String",
                    description=None,
                    allowed_pattern=None,
                    keyid=None,
                    last_modified_date=image.created,
                    version=1,
                    data_type="aws:ec2:image",
                )
            ]


def _image(row: dict[str, Any], data: dict[str, Any], region: str) -> NeuronImage:
    created = datetime.fromisoformat(row.get("created", data["created"])).astimezone(UTC).replace(tzinfo=None)
    sdk = row.get("neuron_sdk")
    return NeuronImage(
        image_id="ami-0" + hashlib.sha256(f"{region} {row['name']}".encode()).hexdigest()[:16],
        name=f"{row['name']} {created:%Y%m%d}",
        description=f"{row['name']}. {f'Neuron SDK {sdk}. ' if sdk else ''}Invented by the embedded AWS.",
        owner_id=data["owner_id"],
        root_device_name=row.get("root_device_name", facts()["image"]["root_device_name"]),
        created=created,
        parameter=f"{data['prefix']}/{row['parameter']}/latest/image_id" if "parameter" in row else None,
    )

"""A launch request to EC2: a RunInstances call with its launch template merged in.

moto reads only a few fields of a launch template. It ignores network interfaces, placement, metadata options, the
market, the instance profile, and the tags of volumes and interfaces.
"""

import copy
import tomllib
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from moto.ec2.utils import convert_tag_spec, parse_user_data
from moto.ssm.models import ssm_backends

RULES: Mapping[str, Any] = tomllib.loads(files("trainium_local.services").joinpath("launch_rules.toml").read_text())
"""The rules for launches, volumes and reservations."""

ON_DEMAND = "on-demand"
PRIMARY = (0, 0)

_call: ContextVar[Mapping[str, Any]] = ContextVar("call", default=MappingProxyType({}))
_OF_A_CALL = (
    "BlockDeviceMappings",
    "CapacityReservationSpecification",
    "CpuOptions",
    "CreditSpecification",
    "EnclaveOptions",
    "HibernationOptions",
    "InstanceMarketOptions",
    "KeyName",
    "NetworkInterfaces",
    "Placement",
    "SecurityGroupIds",
    "SecurityGroups",
    "TagSpecifications",
)


def run_instances_response(original: Any, response: Any) -> Any:
    """Keep the parameters of a RunInstances call; moto passes on only some of them."""
    before = _call.set({name: response._get_param(name) for name in _OF_A_CALL})
    try:
        return original(response)
    finally:
        _call.reset(before)


def card_and_device(interface: Mapping[str, Any]) -> tuple[int, int]:
    """Return the network card index and device index of an interface specification. Both default to 0."""
    return int(interface.get("NetworkCardIndex") or 0), int(interface.get("DeviceIndex") or 0)


@dataclass(frozen=True, kw_only=True)
class LaunchRequest:
    """A launch of instances of one type.

    Attributes:
        market: `on-demand`, `spot` or `capacity-block`.
        subnet_id: The subnet; None if neither the call nor an interface names one.
        zone: The Availability Zone that the call or the launch template names.
        block_devices: Mappings of EBS volumes.
        placement_group: Name of the placement group.
        reservation_id: The Capacity Reservation to launch into.
        instance_profile: ARN or name of the launch template's instance profile; moto handles the call's.
        tags: Tags by resource type.
        details: The parameters of the launch template, overridden by those of the call.
    """

    image_id: str
    instance_type: str
    count: int
    market: str
    subnet_id: str | None
    zone: str | None
    interfaces: tuple[dict[str, Any], ...]
    block_devices: tuple[Mapping[str, Any], ...]
    placement_group: str | None
    reservation_id: str | None
    instance_profile: Mapping[str, str] | None
    metadata_options: Mapping[str, Any]
    monitoring: bool
    tags: Mapping[str, Mapping[str, str]]
    details: Mapping[str, Any]

    @property
    def addresses(self) -> int:
        """IPv4 addresses that one instance takes from its subnet. An efa-only interface takes none."""
        own = [spec for spec in self.interfaces if card_and_device(spec) != PRIMARY]
        return 1 + sum(spec.get("InterfaceType") != "efa-only" for spec in own)


def launch_request(backend: Any, *, image_id: str | None, count: int, arguments: Mapping[str, Any]) -> LaunchRequest:
    """Merge a RunInstances call, whose `arguments` are in moto's form, with its launch template.

    The values of the call take precedence.
    """
    named = arguments.get("launch_template")
    template: Mapping[str, Any] = backend._get_template_from_args(named).data if named else {}
    details = {**template, **{name: value for name, value in _call.get().items() if value}}
    target = (details.get("CapacityReservationSpecification") or {}).get("CapacityReservationTarget") or {}
    placement = details.get("Placement") or {}
    interfaces = [
        {key: value for key, value in spec.items() if value is not None}
        for spec in copy.deepcopy(arguments.get("nics") or template.get("NetworkInterfaces") or [])
    ]
    default_type = arguments.get("is_instance_type_default") and template.get("InstanceType")
    tags = convert_tag_spec(template.get("TagSpecifications") or [])
    for resource_type, added in (arguments.get("tags") or {}).items():
        tags[resource_type] = tags.get(resource_type, {}) | added
    image = _image_id(backend, image_id or template.get("ImageId") or "")
    return LaunchRequest(
        image_id=image,
        instance_type=default_type or arguments.get("instance_type") or "m1.small",
        count=count,
        market=arguments.get("instance_market_options")
        or (template.get("InstanceMarketOptions") or {}).get("MarketType")
        or ON_DEMAND,
        subnet_id=arguments.get("subnet_id") or next((s["SubnetId"] for s in interfaces if s.get("SubnetId")), None),
        zone=arguments.get("placement") or placement.get("AvailabilityZone"),
        interfaces=tuple(interfaces),
        block_devices=tuple(
            {
                **device,
                "Ebs": {"DeleteOnTermination": True, **_root_size(backend.amis.get(image), device), **device["Ebs"]},
            }
            for device in details.get("BlockDeviceMappings") or ()
            if device.get("Ebs")  # instance store volumes, and devices that the mapping removes, have no Ebs
        ),
        placement_group=arguments.get("placement_group") or placement.get("GroupName"),
        reservation_id=target.get("CapacityReservationId"),
        instance_profile=template.get("IamInstanceProfile"),
        metadata_options=arguments.get("metadata_options") or template.get("MetadataOptions") or {},
        monitoring=arguments.get("monitoring_state") == "enabled"
        or str((template.get("Monitoring") or {}).get("Enabled")).lower() == "true",
        tags=tags,
        details=details,
    )


def _root_size(image: Any, device: Mapping[str, Any]) -> dict[str, Any]:
    """Return the default VolumeSize of a device: for the root volume, the size of the image's snapshot."""
    if image is None or device.get("DeviceName") != image.root_device_name or device["Ebs"].get("SnapshotId"):
        return {}
    return {"VolumeSize": image.ebs_snapshot.volume.size}


def _image_id(backend: Any, reference: str) -> str:
    """Return the ID of an image given by ID or by SSM parameter (EC2 User Guide, "resolve:ssm:")."""
    name = reference.removeprefix("resolve:ssm:")
    parameter = ssm_backends[backend.account_id][backend.region_name].get_parameter(name) if name != reference else None
    return str(parameter.value) if parameter else reference


def create_version(original: Any, template: Any, data: dict[str, Any], description: str) -> Any:
    """Decode the user data of a new version. moto decodes only the first, and fails to launch from later ones."""
    user_data = data.get("UserData")
    decoded = parse_user_data(user_data) if isinstance(user_data, str) else user_data
    return original(template, {**data, "UserData": decoded}, description)

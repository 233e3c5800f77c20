"""The EBS volumes that EC2 refuses, by the rules in launch_rules.toml."""

from collections.abc import Iterator, Mapping
from typing import Any

from trainium_local.services.errors import Refused, refusal
from trainium_local.services.expressions import refusals
from trainium_local.services.launch_request import RULES, LaunchRequest

_NUMBERS = ("Size", "Iops", "Throughput")


def create_volume(original: Any, response: Any) -> Any:
    names = ("VolumeType", "Encrypted", "KmsKeyId", "SnapshotId", "MultiAttachEnabled", "VolumeInitializationRate")
    zone = response._get_param("AvailabilityZone")
    if zone and response.ec2_backend.get_zone_by_name(zone) is None:
        raise refusal("zone-unknown", zone=zone)
    for refused in _refusals(response.ec2_backend, {name: response._get_param(name) for name in (*names, *_NUMBERS)}):
        raise refused
    return original(response)


def block_device_refusals(backend: Any, request: LaunchRequest) -> Iterator[Refused]:
    """Yield EC2's errors about the volumes of a launch."""
    for device in request.block_devices:
        yield from _refusals(backend, {**device["Ebs"], "Size": device["Ebs"].get("VolumeSize")})


def _refusals(backend: Any, volume: Mapping[str, Any]) -> Iterator[Refused]:
    values: dict[str, Any] = {name: value for name, value in volume.items() if value not in (None, "")}
    snapshot = backend.snapshots.get(values.get("SnapshotId"))
    if values.get("SnapshotId") and snapshot is None:
        yield Refused("InvalidSnapshot.NotFound", f"The snapshot '{values['SnapshotId']}' does not exist.")
        return
    size = snapshot.volume.size if snapshot else None
    values = {"Size": size, "VolumeType": "gp2"} | values
    if values["Size"] is None:
        yield Refused("MissingParameter", "The request must contain the parameter size or snapshotId")
        return
    numbers = {name: int(values[name]) for name in _NUMBERS if name in values}
    yield from refusals(
        RULES["volume"], {**values, **numbers, "kind": RULES["kinds"].get(values["VolumeType"]), "snapshot": size}
    )

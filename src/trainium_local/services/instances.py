"""Launches of EC2 instances, and the cleanup after termination.

moto launches the instances. This module checks the request as AWS does, and adds the settings that moto drops.
"""

from copy import copy
from typing import Any

from trainium_local.services import event_bridge
from trainium_local.services.launch_checks import refuse_invalid_launch
from trainium_local.services.launch_request import ON_DEMAND, LaunchRequest, launch_request

_GP3_THROUGHPUT = 125  # MiB/s, if a launch names none (EBS documentation, General Purpose SSD)


def run_instances(
    original: Any,
    backend: Any,
    image_id: str,
    count: int,
    user_data: Any,
    security_group_names: list[str],
    **arguments: Any,
) -> Any:
    request = launch_request(backend, image_id=image_id, count=count, arguments=arguments)
    refuse_invalid_launch(backend, request)
    # The subnet determines the zone; moto would compare the two.
    zone = None if request.subnet_id else request.zone
    # Used only in the request: moto does not support this argument.
    arguments.pop("placement_group", None)
    # moto adds the volumes of a template to its default root volume, and would never delete them.
    volumes = [{**device, "Ebs": {**device["Ebs"], "VolumeType": None}} for device in request.block_devices]
    reservation = original(
        backend,
        request.image_id,
        count,
        user_data,
        security_group_names,
        **arguments
        | ({"block_device_mappings": volumes} if volumes else {})
        | {
            "region_name": backend.region_name,
            "instance_type": request.instance_type,
            "nics": list(request.interfaces),
            "subnet_id": request.subnet_id,
            "placement": zone,
            "metadata_options": dict(request.metadata_options),
            "monitoring_state": "enabled" if request.monitoring else "disabled",
        },
    )
    for instance in reservation.instances:
        _complete(backend, instance, request)
    return reservation


def parse_block_device_mapping(_response: Any) -> list[dict[str, Any]]:
    """Do nothing: the launch request contains the mappings. moto requires a size for every volume."""
    return []


def terminate(original: Any, instance: Any) -> Any:
    if instance.state == "terminated":
        return copy(instance.instance_state)
    volumes = [volume.volume_id for volume in instance.block_device_mapping.values()]
    previous = original(instance)
    for volume_id in volumes:
        if volume_id not in instance.ec2_backend.volumes:
            instance.ec2_backend.tags.pop(volume_id, None)
    for interface in instance.nics.values():
        if interface.delete_on_termination:
            instance.ec2_backend.tags.pop(interface.id, None)
        else:
            interface.instance, interface.attachment_id, interface.status = None, None, "available"
    # moto reads the addresses of the instance from the first interface.
    instance.nics = {key: interface for key, interface in instance.nics.items() if key == 0}
    # AWS lists a terminated instance for about an hour, moto until the server ends. A search by tag must not find it.
    instance.ec2_backend.tags.pop(instance.id, None)
    _emit_termination(instance)
    return previous


def _emit_termination(instance: Any) -> None:
    """Emit Auto Scaling's event about the termination of a group's instance by any caller."""
    group = vars(instance).get("autoscaling_group")
    if group is not None:
        event_bridge.emit(
            instance.ec2_backend.account_id,
            instance.region_name,
            source="aws.autoscaling",
            detail_type="EC2 Instance Terminate Successful",
            detail={"AutoScalingGroupName": group.name, "EC2InstanceId": instance.id},
            resources=[group.arn],
        )


def _complete(backend: Any, instance: Any, request: LaunchRequest) -> None:
    instance.lifecycle = None if request.market == ON_DEMAND else request.market
    instance.capacity_reservation_id = request.reservation_id
    if request.placement_group:
        instance.placement.group_name = request.placement_group
    requested = {device["DeviceName"]: device["Ebs"] for device in request.block_devices}
    for name, mapping in instance.get_block_device_mapping:
        volume, ebs = backend.get_volume(mapping.volume_id), requested.get(name, {})
        volume.volume_type, volume.iops = ebs.get("VolumeType") or volume.volume_type, ebs.get("Iops")
        volume.throughput = ebs.get("Throughput", _GP3_THROUGHPUT) if volume.volume_type == "gp3" else None
        volume.add_tags(dict(request.tags.get("volume", {})))
    for interface in instance.nics.values():
        interface.add_tags(dict(request.tags.get("network-interface", {})))
    profile = request.instance_profile
    if profile and not instance.iam_instance_profile:
        backend.associate_iam_instance_profile(
            instance_id=instance.id,
            iam_instance_profile_arn=profile.get("Arn"),
            iam_instance_profile_name=profile.get("Name"),
        )
    groups = [set(interface.group_set) for interface in instance.nics.values()]
    if not instance.security_groups and all(group == groups[0] for group in groups):
        instance.security_groups = sorted(groups[0], key=lambda group: group.id)

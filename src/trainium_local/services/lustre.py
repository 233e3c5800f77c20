"""FSx for Lustre: what AWS shows, refuses and puts into the subnet, where moto does not."""

from typing import Any

from moto.ec2 import ec2_backends
from moto.fsx.exceptions import FileSystemNotFound
from moto.moto_api._internal import mock_random

from trainium_local.services.errors import Refused

_LUSTRE = "LUSTRE"
_LNET_PORT = 988
_DEFAULT_LUSTRE_VERSION = "2.10"


def create_file_system(original: Any, backend: Any, **given: Any) -> Any:
    ec2 = ec2_backends[backend.account_id][backend.region_name]
    subnet = ec2.get_subnet(given["subnet_ids"][0])
    groups = given["security_group_ids"] or []
    if given["file_system_type"] == _LUSTRE and groups and not any(_lets_lnet_in(ec2, group) for group in groups):
        raise Refused(
            "InvalidNetworkSettings",
            "The file system cannot be created because the provided security groups do not permit Lustre LNET network "
            f"traffic on port {_LNET_PORT}",
        )
    made: Any = original(backend, **given)
    made.vpc_id = subnet.vpc_id
    made.version = given["file_system_type_version"] or _DEFAULT_LUSTRE_VERSION
    made.mount_name = mock_random.get_random_hex(8)
    address = subnet.get_available_subnet_ip(instance=made)
    made.interface = ec2.create_network_interface(subnet, address, group_ids=groups, description=made.resource_arn)
    return made


def describe_file_systems(original: Any, backend: Any, *, file_system_ids: list[str], **page: Any) -> Any:
    for file_system_id in file_system_ids or []:
        if file_system_id not in backend.file_systems:
            raise FileSystemNotFound(file_system_id)
    return original(backend, file_system_ids=file_system_ids, **page)


def delete_file_system(original: Any, backend: Any, *, file_system_id: str, **rest: Any) -> Any:
    file_system = backend.file_systems.get(file_system_id)
    deleted = original(backend, file_system_id=file_system_id, **rest)
    ec2_backends[backend.account_id][backend.region_name].delete_network_interface(file_system.interface.id)
    backend.tagger.delete_all_tags_for_resource(file_system.resource_arn)
    return deleted


def to_dict(original: Any, file_system: Any) -> dict[str, Any]:
    shown = original(file_system) | {
        "OwnerId": file_system.backend.account_id,
        "Lifecycle": "AVAILABLE",
        "VpcId": file_system.vpc_id,
        "NetworkInterfaceIds": [file_system.interface.id],
        "FileSystemTypeVersion": file_system.version,
    }
    if file_system.file_system_type == _LUSTRE:
        shown["LustreConfiguration"] = {**(file_system.lustre_configuration or {}), "MountName": file_system.mount_name}
    shown.pop("SecurityGroupIds", None)  # "This list isn't returned in later requests" (FSx API reference)
    return shown


def _lets_lnet_in(ec2: Any, group_id: str) -> bool:
    """Whether a group lets port 988 in from itself, which is where the other file servers are."""
    group = ec2.get_security_group_from_id(group_id)
    from_itself = [rule for rule in group.ingress_rules if rule.source_group.get("GroupId") == group_id]
    return any(rule.ip_protocol == "-1" or rule.from_port <= _LNET_PORT <= rule.to_port for rule in from_itself)

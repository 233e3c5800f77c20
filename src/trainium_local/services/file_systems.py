"""FSx for Lustre and EFS: descriptions, refusals, updates and network interfaces that moto lacks.

file_systems.toml contains the rules.
"""

import json
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from ipaddress import IPv4Network
from typing import Any

from moto.ec2 import ec2_backends
from moto.efs.exceptions import FileSystemNotFound as EfsFileSystemNotFound
from moto.fsx.exceptions import FileSystemNotFound
from moto.moto_api._internal import mock_random

from trainium_local.services.errors import Refused
from trainium_local.services.expressions import refusals

_RULES: Mapping[str, Any] = tomllib.loads(files("trainium_local.services").joinpath("file_systems.toml").read_text())
_LUSTRE = "LUSTRE"
_LNET_PORT = 988


def _refuse(service: str, requested: Mapping[str, Any], current: Mapping[str, Any] | None = None) -> None:
    """Raise Refused for the first rule that matches the requested file system."""
    values = {name: value for name, value in requested.items() if value not in (None, "")}
    for refused in refusals(_RULES[service], {**values, "current": current}):
        raise refused


def create_file_system(original: Any, backend: Any, **arguments: Any) -> Any:
    ec2 = ec2_backends[backend.account_id][backend.region_name]
    groups, lustre = arguments["security_group_ids"] or [], arguments["file_system_type"] == _LUSTRE
    if lustre:
        arguments["lustre_configuration"] = {"DeploymentType": "SCRATCH_1", **(arguments["lustre_configuration"] or {})}
        arguments["storage_type"] = arguments["storage_type"] or "SSD"
        arguments["file_system_type_version"] = arguments["file_system_type_version"] or _version(
            arguments["lustre_configuration"]
        )
        _refuse("lustre", _lustre_settings(**arguments))
    subnet = ec2.get_subnet(arguments["subnet_ids"][0])
    if lustre and groups and not any(_lets_lnet_in(ec2, group, subnet) for group in groups):
        raise Refused(
            "InvalidNetworkSettings",
            "The file system cannot be created because the default security group in the subnet provided or the "
            f"provided security groups do not permit Lustre LNET network traffic on port {_LNET_PORT}",
        )
    file_system: Any = original(backend, **arguments)
    file_system.vpc_id = subnet.vpc_id
    file_system.version = arguments["file_system_type_version"]
    file_system.mount_name = mock_random.get_random_hex(8)
    address = subnet.get_available_subnet_ip(instance=file_system)
    file_system.interface = ec2.create_network_interface(
        subnet, address, group_ids=groups, description=file_system.resource_arn
    )
    return file_system


def update_file_system(response: Any) -> str:
    """FSx UpdateFileSystem. The update is immediate; AWS takes minutes to hours."""
    request, backend = json.loads(response.body), response.fsx_backend
    file_system = backend.file_systems.get(request["FileSystemId"])
    if file_system is None:
        raise FileSystemNotFound(request["FileSystemId"])
    current = _lustre_settings(
        subnet_ids=file_system.subnet_ids,
        storage_capacity=file_system.storage_capacity,
        storage_type=file_system.storage_type,
        file_system_type_version=file_system.version,
        lustre_configuration=file_system.lustre_configuration,
    )
    configuration = {**(file_system.lustre_configuration or {}), **request.get("LustreConfiguration", {})}
    requested = current | {key: value for key, value in request.items() if key in current} | configuration
    if file_system.file_system_type == _LUSTRE:
        _refuse("lustre", requested, current)
        file_system.lustre_configuration = configuration
    file_system.storage_capacity, file_system.version = requested["StorageCapacity"], requested["FileSystemTypeVersion"]
    return json.dumps({"FileSystem": file_system.to_dict()})


def _lustre_settings(*, lustre_configuration: Mapping[str, Any] | None, **arguments: Any) -> dict[str, Any]:
    """Return the settings of a file system in the form that the rules use."""
    return {
        "SubnetIds": arguments["subnet_ids"],
        "StorageCapacity": arguments["storage_capacity"],
        "StorageType": arguments["storage_type"],
        "FileSystemTypeVersion": arguments["file_system_type_version"],
        **(lustre_configuration or {}),
    }


def _version(configuration: Mapping[str, Any]) -> str:
    """Return the default Lustre version of a file system (FSx API reference)."""
    if configuration["DeploymentType"] != "PERSISTENT_2":
        return "2.10"
    return "2.15" if configuration.get("MetadataConfiguration") else "2.12"


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


def _lets_lnet_in(ec2: Any, group_id: str, subnet: Any) -> bool:
    """Return whether a group permits port 988 from itself or from the subnet, where the other file servers are."""
    rules = ec2.get_security_group_from_id(group_id).ingress_rules
    return any(
        (rule.ip_protocol == "-1" or int(rule.from_port) <= _LNET_PORT <= int(rule.to_port))
        and (
            any(source.get("GroupId") == group_id for source in _listed(rule.source_group))
            or any(
                IPv4Network(source["CidrIp"], strict=False).supernet_of(IPv4Network(subnet.cidr_block))
                for source in _listed(rule.ip_range)
                if source.get("CidrIp")
            )
        )
        for rule in rules
    )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if value else []


def create_efs_file_system(original: Any, backend: Any, **arguments: Any) -> Any:
    _refuse("efs", {_efs_name(name): value for name, value in arguments.items()})
    return original(backend, **arguments)


def update_efs_file_system(response: Any) -> tuple[str, dict[str, Any]]:
    """EFS UpdateFileSystem: throughput mode and provisioned throughput."""
    file_system_id = response._get_param("FileSystemId")
    file_system = response.efs_backend.file_systems_by_id.get(file_system_id)
    if file_system is None:
        raise EfsFileSystemNotFound(file_system_id)
    mode = response._get_param("ThroughputMode") or file_system.throughput_mode
    provisioned = response._get_param("ProvisionedThroughputInMibps")
    if mode == "provisioned" and not provisioned:
        provisioned = file_system.provisioned_throughput_in_mibps
    requested = {"ThroughputMode": mode, "ProvisionedThroughputInMibps": provisioned}
    _refuse("efs", {**file_system.info_json(), **requested})
    file_system.throughput_mode, file_system.provisioned_throughput_in_mibps = mode, provisioned
    return json.dumps(file_system.info_json()), {"status": 202, "Content-Type": "application/json"}


def _efs_name(argument: str) -> str:
    """provisioned_throughput_in_mibps -> ProvisionedThroughputInMibps"""
    return "".join(word.capitalize() for word in argument.split("_"))

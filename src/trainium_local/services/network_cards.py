"""Instances with several network cards, and Elastic Fabric Adapters on them.

moto stores interfaces by device index, which is 1 on every card after the first, so only one of them would remain. Here
the primary interface has the key 0, and the others are numbered from 1.
"""

from collections.abc import Iterator
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPES

from trainium_local.services.errors import Refused
from trainium_local.services.launch_request import PRIMARY, LaunchRequest, card_and_device

EFA = ("efa", "efa-only")


def efa_refusals(request: LaunchRequest) -> Iterator[Refused]:
    """Yield EC2's errors about Elastic Fabric Adapters in a launch."""
    name, specs = request.instance_type, request.interfaces
    network: dict[str, Any] = INSTANCE_TYPES[name]["NetworkInfo"]
    efa = [spec for spec in specs if spec.get("InterfaceType") in EFA]
    most = int((network.get("EfaInfo") or {}).get("MaximumEfaInterfaces") or 0)
    if efa and not network.get("EfaSupported"):
        yield Refused("InvalidParameterCombination", f"{name} instances do not support Elastic Fabric Adapters.")
    if network.get("EfaSupported") and len(efa) > most:
        message = f"EFA interface count {len(efa)} exceeds the limit of {most} for {name}."
        yield Refused("AttachmentLimitExceeded", message)
    if any(spec.get("InterfaceType") == "efa-only" and card_and_device(spec) == PRIMARY for spec in specs):
        yield Refused("InvalidParameterCombination", "The primary network interface cannot be efa-only.")


def prep_nics(original: Any, instance: Any, nic_spec: list[dict[str, Any]], **rest: Any) -> None:
    primary = [interface for interface in nic_spec if card_and_device(interface) == PRIMARY]
    original(instance, primary, **rest)
    for interface in primary or [{}]:  # without an interface, moto creates one, and keeps it at termination
        _describe(instance.nics[0], interface)
    for key, interface in enumerate((spec for spec in nic_spec if spec not in primary), start=1):
        _attach(instance, key, interface)


def attachment_init(original: Any, attachment: Any, eni: Any) -> None:
    original(attachment, eni)
    attachment.network_card_index = vars(eni).get("network_card_index", 0)


def _attach(instance: Any, key: int, interface: dict[str, Any]) -> None:
    backend = instance.ec2_backend
    _, device = card_and_device(interface)
    existing = interface.get("NetworkInterfaceId")
    if existing:
        eni = backend.get_network_interface(existing)
    else:
        subnet = backend.get_subnet(interface.get("SubnetId") or instance.subnet_id)
        eni = backend.create_network_interface(
            subnet,
            subnet.get_available_subnet_ip(instance=instance),
            group_ids=interface.get("Groups") or [group.id for group in instance.security_groups],
            description=interface.get("Description"),
        )
        if interface.get("InterfaceType") == "efa-only":
            _give_back_address(eni)
    instance.attach_eni(eni, key)
    eni.device_index = device
    _describe(eni, interface)


def _describe(eni: Any, interface: dict[str, Any]) -> None:
    eni.network_card_index = card_and_device(interface)[0]
    eni.interface_type = interface.get("InterfaceType") or "interface"
    # An interface created at launch is deleted with its instance by default.
    eni.delete_on_termination = str(interface.get("DeleteOnTermination", True)).lower() == "true"


def _give_back_address(eni: Any) -> None:
    """An efa-only interface carries no IP traffic and has no address."""
    eni.subnet.del_subnet_ip(eni.private_ip_address)
    eni.private_ip_address = None
    eni.private_ip_addresses = []

"""The network interfaces of an instance with several network cards.

moto keys an instance's interfaces by device index, which is 1 for the first of every card but the first, so only one
would survive. Here the key is the place of the interface in the request, the device index is the interface's own.
"""

from typing import Any

PRIMARY = (0, 0)


def card_and_device(interface: dict[str, Any]) -> tuple[int, int]:
    """Network card index and device index of an interface specification; AWS's default is 0 for both."""
    return int(interface.get("NetworkCardIndex") or 0), int(interface.get("DeviceIndex") or 0)


def prep_nics(original: Any, instance: Any, nic_spec: list[dict[str, Any]], **rest: Any) -> None:
    primary = [interface for interface in nic_spec if card_and_device(interface) == PRIMARY]
    original(instance, primary, **rest)
    for interface in primary or [{}]:  # without one moto makes it, and would leave it behind at termination
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
    # An interface made at launch goes with its instance unless the request says otherwise.
    eni.delete_on_termination = str(interface.get("DeleteOnTermination", True)).lower() == "true"


def _give_back_address(eni: Any) -> None:
    """An efa-only interface carries no IP traffic and has no address."""
    eni.subnet.del_subnet_ip(eni.private_ip_address)
    eni.private_ip_address = None
    eni.private_ip_addresses = []

"""What EC2 refuses to launch. The messages are AWS's where they are known; the codes always."""

from collections.abc import Iterator
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS, INSTANCE_TYPES
from moto.ec2.utils import filter_iam_instance_profiles
from moto.iam.exceptions import NotFoundException

from trainium_local.services.capacity_reservations import refuse_without_room
from trainium_local.services.errors import Refused
from trainium_local.services.launch_request import LaunchRequest
from trainium_local.services.network_interfaces import card_and_device
from trainium_local.services.placement_groups import existing
from trainium_local.services.vcpu_use import refuse_over_quota

EFA = ("efa", "efa-only")


def refuse_what_ec2_refuses(backend: Any, request: LaunchRequest) -> None:
    """Raise Refused when AWS would not launch this."""
    _image(backend, request)
    _instance_type(backend, request)
    _zone(backend, request)
    _interfaces(request)
    _placement_group(backend, request)
    _instance_profile(backend, request)
    _addresses(backend, request)
    refuse_without_room(backend, request)
    refuse_over_quota(backend, instance_type=request.instance_type, market=request.market, count=request.count)


def _image(backend: Any, request: LaunchRequest) -> None:
    if not request.image_id:
        raise Refused("MissingParameter", "The request must contain the parameter ImageId")
    if request.image_id not in backend.amis:
        raise Refused("InvalidAMIID.NotFound", f"The image id '[{request.image_id}]' does not exist")


def _instance_type(backend: Any, request: LaunchRequest) -> None:
    if request.instance_type not in INSTANCE_TYPES:
        raise Refused("InvalidParameterValue", f"Invalid value '{request.instance_type}' for InstanceType.")
    possible = INSTANCE_TYPES[request.instance_type]["ProcessorInfo"]["SupportedArchitectures"]
    architecture = backend.amis[request.image_id].architecture
    if architecture not in possible:
        raise Refused(
            "InvalidParameterValue",
            f"The architecture '{','.join(possible)}' of the specified instance type does not match the architecture "
            f"'{architecture}' of the specified AMI. Specify an instance type and an AMI that have matching "
            "architectures, and try again.",
        )


def _zone(backend: Any, request: LaunchRequest) -> None:
    offers = {
        offer["Location"]
        for offer in INSTANCE_TYPE_OFFERINGS["availability-zone"].get(backend.region_name, [])
        if offer["InstanceType"] == request.instance_type
    }
    zone = backend.get_subnet(request.subnet_id).availability_zone if request.subnet_id else request.zone
    if not offers:
        raise Refused(
            "Unsupported",
            f"The requested configuration is currently not supported: {request.instance_type} is not offered in "
            f"{backend.region_name}. Please check the documentation for supported configurations.",
        )
    if zone and zone not in offers:
        raise Refused(
            "Unsupported",
            f"Your requested instance type ({request.instance_type}) is not supported in your requested Availability "
            f"Zone ({zone}). Please retry your request by not specifying an Availability Zone or choosing "
            f"{', '.join(sorted(offers))}.",
        )


def _interfaces(request: LaunchRequest) -> None:
    for refusal in _interface_refusals(request, INSTANCE_TYPES[request.instance_type]["NetworkInfo"]):
        raise refusal


def _interface_refusals(request: LaunchRequest, network: dict[str, Any]) -> Iterator[Refused]:
    name, specs = request.instance_type, request.interfaces
    places = [card_and_device(spec) for spec in specs]
    efa = [spec for spec in specs if spec.get("InterfaceType") in EFA]
    cards = int(network.get("MaximumNetworkCards") or 1)
    if specs and (0, 0) not in places:
        yield Refused("InvalidParameterValue", "A network interface with device index 0 on network card 0 is required.")
    if len(set(places)) < len(places):
        yield Refused(
            "InvalidParameterValue", "Each network interface requires its own device index on a network card."
        )
    if any(card >= cards for card, _ in places):
        highest = max(card for card, _ in places)
        yield Refused(
            "InvalidParameterValue",
            f"Network card index {highest} exceeds the limit for {name} ({cards} network cards).",
        )
    if efa and not network.get("EfaSupported"):
        yield Refused("InvalidParameterCombination", f"{name} instances do not support Elastic Fabric Adapters.")
    most = int((network.get("EfaInfo") or {}).get("MaximumEfaInterfaces") or 0)
    if network.get("EfaSupported") and len(efa) > most:
        yield Refused(
            "AttachmentLimitExceeded", f"EFA interface count {len(efa)} exceeds the limit of {most} for {name}."
        )
    if len(specs) > 1 and any(_is_true(spec.get("AssociatePublicIpAddress")) for spec in specs):
        yield Refused(
            "InvalidParameterCombination",
            "The associatePublicIPAddress parameter cannot be specified when launching with multiple network "
            "interfaces.",
        )
    if any(spec.get("InterfaceType") == "efa-only" and card_and_device(spec) == (0, 0) for spec in specs):
        yield Refused("InvalidParameterCombination", "The primary network interface cannot be efa-only.")


def _placement_group(backend: Any, request: LaunchRequest) -> None:
    if not request.placement_group:
        return
    existing(backend, request.placement_group)
    if request.market == "capacity-block":
        raise Refused(
            "InvalidParameterCombination", "You cannot specify a placement group with a Capacity Block for ML."
        )


def _instance_profile(backend: Any, request: LaunchRequest) -> None:
    profile = request.instance_profile
    if not profile:
        return
    try:
        filter_iam_instance_profiles(backend.account_id, backend.partition, profile.get("Arn"), profile.get("Name"))
    except NotFoundException as error:
        key = "arn" if profile.get("Arn") else "name"
        value = profile.get("Arn") or profile.get("Name")
        raise Refused(
            "InvalidParameterValue",
            f"Value ({value}) for parameter iamInstanceProfile.{key} is invalid. Invalid IAM Instance Profile {key}",
        ) from error


def _addresses(backend: Any, request: LaunchRequest) -> None:
    if not request.subnet_id:
        return
    subnet = backend.get_subnet(request.subnet_id)
    if request.addresses * request.count > subnet.available_ip_address_count:
        raise Refused(
            "InsufficientFreeAddressesInSubnet",
            f"There are not enough free addresses in subnet '{subnet.id}' to satisfy the requested number of "
            "instances.",
        )


def _is_true(value: Any) -> bool:
    return str(value).lower() == "true"

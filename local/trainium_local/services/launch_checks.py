"""What EC2 refuses to launch. The messages are AWS's where they are known; the codes always."""

from collections.abc import Iterator, Mapping
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
    for refusal in _refusals(backend, request):
        raise refusal
    refuse_without_room(backend, request)
    refuse_over_quota(backend, instance_type=request.instance_type, market=request.market, count=request.count)


def _refusals(backend: Any, request: LaunchRequest) -> Iterator[Refused]:
    """Each check may rely on those before it."""
    name, image_id = request.instance_type, request.image_id
    if not image_id:
        yield Refused("MissingParameter", "The request must contain the parameter ImageId")
    if image_id not in backend.amis:
        yield Refused("InvalidAMIID.NotFound", f"The image id '[{image_id}]' does not exist")
    if name not in INSTANCE_TYPES:
        yield Refused("InvalidParameterValue", f"Invalid value '{name}' for InstanceType.")
    possible = INSTANCE_TYPES[name]["ProcessorInfo"]["SupportedArchitectures"]
    architecture = backend.amis[image_id].architecture
    if architecture not in possible:
        yield Refused(
            "InvalidParameterValue",
            f"The architecture '{','.join(possible)}' of the specified instance type does not match the architecture "
            f"'{architecture}' of the specified AMI. Specify an instance type and an AMI that have matching "
            "architectures, and try again.",
        )
    offered = INSTANCE_TYPE_OFFERINGS["availability-zone"].get(backend.region_name, [])
    zones = {offer["Location"] for offer in offered if offer["InstanceType"] == name}
    if not zones:
        yield Refused(
            "Unsupported",
            f"The requested configuration is currently not supported: {name} is not offered in "
            f"{backend.region_name}. Please check the documentation for supported configurations.",
        )
    subnet = backend.get_subnet(request.subnet_id) if request.subnet_id else None
    zone = subnet.availability_zone if subnet else request.zone
    if zone and zone not in zones:
        yield Refused(
            "Unsupported",
            f"Your requested instance type ({name}) is not supported in your requested Availability "
            f"Zone ({zone}). Please retry your request by not specifying an Availability Zone or choosing "
            f"{', '.join(sorted(zones))}.",
        )
    yield from _interface_refusals(request, INSTANCE_TYPES[name]["NetworkInfo"])
    if request.placement_group:
        existing(backend, request.placement_group)
        if request.market == "capacity-block":
            yield Refused(
                "InvalidParameterCombination", "You cannot specify a placement group with a Capacity Block for ML."
            )
    yield from _profile_refusals(backend, request.instance_profile)
    if subnet and request.addresses * request.count > subnet.available_ip_address_count:
        yield Refused(
            "InsufficientFreeAddressesInSubnet",
            f"There are not enough free addresses in subnet '{subnet.id}' to satisfy the requested number of "
            "instances.",
        )


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


def _profile_refusals(backend: Any, profile: Mapping[str, str] | None) -> Iterator[Refused]:
    if not profile:
        return
    try:
        filter_iam_instance_profiles(backend.account_id, backend.partition, profile.get("Arn"), profile.get("Name"))
    except NotFoundException:
        key = "arn" if profile.get("Arn") else "name"
        value = profile.get("Arn") or profile.get("Name")
        yield Refused(
            "InvalidParameterValue",
            f"Value ({value}) for parameter iamInstanceProfile.{key} is invalid. Invalid IAM Instance Profile {key}",
        )


def _is_true(value: Any) -> bool:
    return str(value).lower() == "true"

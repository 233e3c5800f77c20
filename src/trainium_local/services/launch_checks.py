"""What EC2 refuses to launch."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS, INSTANCE_TYPES
from moto.ec2.utils import filter_iam_instance_profiles
from moto.iam.exceptions import NotFoundException

from trainium_local.services.capacity_reservations import CAPACITY_BLOCK, refuse_without_room
from trainium_local.services.errors import Refused, refusal
from trainium_local.services.launch_request import PRIMARY, LaunchRequest, card_and_device
from trainium_local.services.network_cards import efa_refusals
from trainium_local.services.placement_groups import existing
from trainium_local.services.vcpu_use import refuse_over_quota


def refuse_what_ec2_refuses(backend: Any, request: LaunchRequest) -> None:
    """Raise Refused when AWS would not launch this."""
    for refused in chain(_refusals(backend, request), efa_refusals(request)):
        raise refused
    refuse_without_room(backend, request)
    refuse_over_quota(backend, instance_type=request.instance_type, market=request.market, count=request.count)


def _refusals(backend: Any, request: LaunchRequest) -> Iterator[Refused]:
    """Each check may rely on those before it."""
    name, image_id = request.instance_type, request.image_id
    if not image_id:
        yield refusal("image-missing")
    if image_id not in backend.amis:
        yield refusal("image-unknown", image=image_id)
    if name not in INSTANCE_TYPES:
        yield refusal("instance-type-unknown", type=name)
    possible = INSTANCE_TYPES[name]["ProcessorInfo"]["SupportedArchitectures"]
    architecture = backend.amis[image_id].architecture
    if architecture not in possible:
        yield refusal("architecture-differs", possible=",".join(possible), architecture=architecture)
    offered = INSTANCE_TYPE_OFFERINGS["availability-zone"].get(backend.region_name, [])
    zones = {offer["Location"] for offer in offered if offer["InstanceType"] == name}
    if not zones:
        yield refusal("type-not-in-region", type=name, region=backend.region_name)
    subnet = backend.get_subnet(request.subnet_id) if request.subnet_id else None
    zone = subnet.availability_zone if subnet else request.zone
    if zone and zone not in zones:
        yield refusal("type-not-in-zone", type=name, zone=zone, zones=", ".join(sorted(zones)))
    yield from _interface_refusals(request, INSTANCE_TYPES[name]["NetworkInfo"])
    if request.placement_group:
        existing(backend, request.placement_group)
        if request.market == CAPACITY_BLOCK:
            yield refusal("capacity-block-in-placement-group")
    yield from _profile_refusals(backend, request.instance_profile)
    if subnet and request.addresses * request.count > subnet.available_ip_address_count:
        yield refusal("addresses-too-few", subnet=subnet.id)


def _interface_refusals(request: LaunchRequest, network: dict[str, Any]) -> Iterator[Refused]:
    name, specs = request.instance_type, request.interfaces
    places = [card_and_device(spec) for spec in specs]
    cards = int(network.get("MaximumNetworkCards") or 1)
    highest = max((card for card, _ in places), default=0)
    if specs and PRIMARY not in places:
        yield refusal("network-interface-not-primary")
    if len(set(places)) < len(places):
        yield refusal("network-interfaces-at-one-index")
    if highest >= cards:
        yield refusal("network-card-unknown", index=highest, type=name, cards=cards)
    if len(specs) > 1 and any(str(spec.get("AssociatePublicIpAddress")).lower() == "true" for spec in specs):
        yield refusal("public-address-of-several-interfaces")


def _profile_refusals(backend: Any, profile: Mapping[str, str] | None) -> Iterator[Refused]:
    if not profile:
        return
    try:
        filter_iam_instance_profiles(backend.account_id, backend.partition, profile.get("Arn"), profile.get("Name"))
    except NotFoundException:
        key = "arn" if profile.get("Arn") else "name"
        yield refusal("instance-profile-unknown", key=key, value=profile.get("Arn") or profile.get("Name"))

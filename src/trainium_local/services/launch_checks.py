"""The launches that EC2 refuses."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS, INSTANCE_TYPES
from moto.ec2.utils import filter_iam_instance_profiles
from moto.iam.exceptions import NotFoundException

from trainium_local.services.capacity_reservations import CAPACITY_BLOCK, refuse_without_room, reservations, shown
from trainium_local.services.errors import Refused, refusal
from trainium_local.services.expressions import refusals
from trainium_local.services.launch_request import PRIMARY, RULES, LaunchRequest, card_and_device
from trainium_local.services.network_cards import efa_refusals
from trainium_local.services.placement_groups import existing
from trainium_local.services.vcpu_use import refuse_over_quota
from trainium_local.services.volumes import block_device_refusals


def refuse_invalid_launch(backend: Any, request: LaunchRequest) -> None:
    """Raise Refused if AWS would refuse the launch."""
    for refused in launch_refusals(backend, request):
        raise refused
    refuse_without_room(backend, request)
    refuse_over_quota(backend, instance_type=request.instance_type, market=request.market, count=request.count)


def launch_refusals(backend: Any, request: LaunchRequest) -> Iterator[Refused]:
    """Yield the errors of a launch, except quotas and available capacity of reservations."""
    return chain(_refusals(backend, request), efa_refusals(request))


def _refusals(backend: Any, request: LaunchRequest) -> Iterator[Refused]:
    """Yield the errors. Each check may rely on earlier ones."""
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
    if request.reservation_id and request.reservation_id not in reservations(backend):
        yield refusal("reservation-unknown", reservation=request.reservation_id)
    yield from refusals(RULES["launch"], _rule_input(backend, request, subnet, zone))
    yield from block_device_refusals(backend, request)
    yield from _profile_refusals(backend, request.instance_profile)
    if subnet and request.addresses * request.count > subnet.available_ip_address_count:
        yield refusal("addresses-too-few", subnet=subnet.id)


def _rule_input(backend: Any, request: LaunchRequest, subnet: Any, zone: str | None) -> dict[str, Any]:
    """Return the input of the rules of launch_rules.toml for a launch."""
    details = request.details
    vpcs = {group.id: group.vpc_id for groups in backend.groups.values() for group in groups.values()}
    named = [
        *(details.get("SecurityGroupIds") or ()),
        *(id_ for interface in request.interfaces for id_ in interface.get("Groups") or ()),
    ]
    group = existing(backend, request.placement_group) if request.placement_group else None
    reservation = reservations(backend).get(request.reservation_id or "")
    return {
        **details,
        "market": request.market,
        "count": request.count,
        "type": INSTANCE_TYPES[request.instance_type],
        "keys": list(backend.key_pairs),
        "unknown": [group_id for group_id in named if group_id not in vpcs],
        "elsewhere": [group_id for group_id in named if subnet and vpcs.get(group_id) != subnet.vpc_id],
        "placement": group and {**group, "RunningHere": _running_in(backend, request.placement_group, zone)},
        "reservation": reservation and shown(backend, reservation),
        "image": {"platform": backend.amis[request.image_id].platform},
    }


def _running_in(backend: Any, group: str | None, zone: str | None) -> int:
    places = [(instance.placement.group_name, instance.placement.zone) for instance in backend.all_running_instances()]
    return places.count((group, zone))


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
    for card in network.get("NetworkCards") or ():
        most = int(card["MaximumNetworkInterfaces"])
        used = [card_index for card_index, _ in places].count(card["NetworkCardIndex"])
        if used > most:
            yield refusal("network-interfaces-too-many", used=used, type=name, most=most, card=card["NetworkCardIndex"])
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

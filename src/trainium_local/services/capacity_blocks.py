"""Capacity Blocks of EC2 (offerings and purchases) and Spot placement scores, which moto lacks.

The offerings of a region are kept on its EC2 backend, because a purchase names only the ID of an offering.
"""

from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS, INSTANCE_TYPES
from moto.moto_api._internal import mock_random

from trainium_local import clock
from trainium_local.seeds.capacity_offers import Offer, is_sold, offers, spot_placement_score
from trainium_local.services.capacity_reservations import (
    CAPACITY_BLOCK,
    moment,
    reserve,
    shown,
    zone_in,
)
from trainium_local.services.errors import Refused


def describe_capacity_block_offerings(response: Any) -> ActionResult:
    backend, name = response.ec2_backend, response._get_param("InstanceType")
    sells = CAPACITY_BLOCK in INSTANCE_TYPES.get(name, {}).get("SupportedUsageClasses", ())
    if not sells or not is_sold(region=backend.region_name, instance_type=name):
        raise Refused(
            "InvalidParameterValue",
            f"The instance type '{name}' is not supported for Capacity Blocks in '{backend.region_name}'. "
            "Specify a compatible instance type and try again.",
        )
    all_offers = offers(
        region=backend.region_name,
        instance_type=name,
        instances=int(response._get_param("InstanceCount")),
        hours=int(response._get_param("CapacityDurationHours")),
        now=clock.now(),
    )
    earliest, latest = (moment(response._get_param(key)) for key in ("StartDateRange", "EndDateRange"))
    for_sale = [
        offer
        for offer in all_offers
        if offer.offering_id not in _sold(backend)
        and (earliest is None or offer.start >= earliest)
        and (latest is None or offer.end <= latest)
    ]
    _offered(backend).update({offer.offering_id: offer for offer in for_sale})
    return ActionResult({"CapacityBlockOfferings": [_shown_offer(backend, offer) for offer in for_sale]})


def purchase_capacity_block(response: Any) -> ActionResult:
    backend, offering_id = response.ec2_backend, response._get_param("CapacityBlockOfferingId")
    offer = _offered(backend).get(offering_id)
    if offer is None or offering_id in _sold(backend):
        raise Refused("InvalidParameterValue", f"The Capacity Block offering '{offering_id}' is not available.")
    _sold(backend).add(offering_id)
    reserved = reserve(
        response,
        zone_in(backend, zone_id=offer.zone_id),
        ReservationType=CAPACITY_BLOCK,
        InstanceType=offer.instance_type,
        TotalInstanceCount=offer.instances,
        InstanceMatchCriteria="targeted",
        StartDate=offer.start,
        EndDate=offer.end,
        CapacityBlockId="cb-" + mock_random.get_random_hex(17),
    )
    return ActionResult({"CapacityReservation": shown(backend, reserved)})


def _shown_offer(backend: Any, offer: Offer) -> dict[str, Any]:
    minutes = int((offer.end - offer.start).total_seconds()) // 60
    return {
        "CapacityBlockOfferingId": offer.offering_id,
        "InstanceType": offer.instance_type,
        "AvailabilityZone": zone_in(backend, zone_id=offer.zone_id).name,
        "InstanceCount": offer.instances,
        "StartDate": offer.start,
        "EndDate": offer.end,
        "CapacityBlockDurationHours": minutes // 60,
        "CapacityBlockDurationMinutes": minutes % 60,
        "UpfrontFee": str(offer.fee),
        "CurrencyCode": "USD",
        "Tenancy": "default",
    }


def _offered(backend: Any) -> dict[str, Offer]:
    return vars(backend).setdefault("capacity_block_offers", {})


def _sold(backend: Any) -> set[str]:
    return vars(backend).setdefault("capacity_block_offers_sold", set())


def get_spot_placement_scores(response: Any) -> ActionResult:
    """Return seeded scores, equal for every zone that offers the type."""
    names = response._get_param("InstanceTypes", []) or []
    by_zone = str(response._get_param("SingleAvailabilityZone")).lower() == "true"
    scores: list[dict[str, Any]] = []
    for region in response._get_param("RegionNames", []) or [response.region]:
        offers = INSTANCE_TYPE_OFFERINGS["availability-zone-id"].get(region, [])
        places: dict[str, int] = {}
        for offer in offers:
            if offer["InstanceType"] in names:
                score = spot_placement_score(offer["InstanceType"])
                places[offer["Location"]] = max(score, places.get(offer["Location"], 0))
        if by_zone:
            scores += [{"Region": region, "AvailabilityZoneId": zone, "Score": s} for zone, s in places.items()]
        elif places:
            scores.append({"Region": region, "Score": max(places.values())})
    return ActionResult({"SpotPlacementScores": scores})

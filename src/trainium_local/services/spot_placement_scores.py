"""Spot placement scores of EC2, which moto lacks: seeded, the same for every zone that offers the type."""

from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS

from trainium_local.seeds.capacity_offers import spot_placement_score


def get_spot_placement_scores(response: Any) -> ActionResult:
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

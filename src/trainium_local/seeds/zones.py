"""Which Availability Zones offer an instance type, by name.

The name of a zone means another zone in every account. moto ships the offerings by zone id, by zone name, and a table
of names and ids of its own; the names come from two accounts, so they disagree (us-east-1). The ids are the facts: the
offerings by name are made from them with moto's table, so that a subnet, its zone id and the offers agree.
"""

from typing import Any

from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend
from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS


def install() -> None:
    by_name: dict[str, list[dict[str, Any]]] = INSTANCE_TYPE_OFFERINGS["availability-zone"]
    for region, offers in INSTANCE_TYPE_OFFERINGS["availability-zone-id"].items():
        names = {zone.zone_id: zone.name for zone in RegionsAndZonesBackend.zones.get(region, [])}
        by_name[region] = [
            offer | {"Location": names[offer["Location"]], "LocationType": "availability-zone"}
            for offer in offers
            if offer["Location"] in names
        ]

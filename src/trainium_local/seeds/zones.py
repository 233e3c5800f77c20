"""The Availability Zones that offer an instance type, by name.

A zone name maps to different zones in different accounts. moto includes the offerings by zone ID and by zone name, and
a table of names and IDs. The names come from two accounts, so they disagree (us-east-1). The IDs are correct, so the
offerings by name are derived from them with moto's table. Subnets, zone IDs and offerings then agree.
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

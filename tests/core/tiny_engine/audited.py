"""The resources of the tiny engine for an audit."""

from trainium_core.audit.listings.listing import Entry, Listing, Location
from trainium_core.audit.resource import Resource


def _disk(entry: Entry, location: Location) -> Resource:
    return Resource(name=entry["Name"], arn=location.arn("tiny", entry["Name"]), ids=frozenset([entry["Name"]]))


LISTINGS = (
    Listing(
        kind="tiny disk",
        resource_type="AWS::Tiny::Disk",
        arn_type="tiny:disk",
        service="tiny",
        permission="tiny:ListDisks",
        entries="Disks[]",
        read=_disk,
    ),
)

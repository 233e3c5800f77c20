"""The resources of the tiny engine for an audit."""

from trainium_core.audit.listings.listing import Entry, Listing, Location
from trainium_core.audit.resource import Resource


@Listing("tiny disk", "AWS::Tiny::Disk", arn_type="tiny:disk", permission="tiny:ListDisks")
def _disks(entry: Entry, location: Location) -> Resource:
    return Resource(name=entry["Name"], arn=location.arn("tiny", entry["Name"]), ids=frozenset([entry["Name"]]))


LISTINGS = (_disks,)

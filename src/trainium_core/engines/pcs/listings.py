"""The clusters of AWS PCS, for `trn audit`."""

from trainium_core.audit.listings.listing import Entry, Listing, Location
from trainium_core.audit.resource import Charge, Resource


@Listing(
    "AWS PCS cluster", "AWS::PCS::Cluster", arn_type="pcs:cluster", permission="pcs:ListClusters", entries="clusters[]"
)
def _clusters(entry: Entry, _location: Location) -> Resource:
    return Resource(
        name=entry["name"],
        arn=entry["arn"],
        ids=frozenset([entry["arn"], entry["id"]]),
        state=entry["status"],
        created=entry.get("createdAt"),
        charge=Charge(unpriced="its Slurm controller"),
    )


LISTINGS = (_clusters,)

"""The node groups and Pod Identity associations of all EKS clusters, for `trn audit`."""

from trainium_core.audit.listings.listing import Entry, Listing, Location
from trainium_core.audit.resource import Resource
from trainium_core.engines.eks.aws_parts import described_associations, described_groups


@Listing(
    "EKS node group",
    "AWS::EKS::Nodegroup",
    arn_type="eks:nodegroup",
    permission="eks:ListClusters",
    entries="clusters[]",
    expand=described_groups,
    in_estimates=False,
)
def _groups(entry: Entry, _location: Location) -> Resource:
    """A group, without the cost of its nodes: the audit lists them as instances."""
    name, cluster = entry["nodegroupName"], entry["clusterName"]
    return Resource(
        name=name,
        arn=entry["nodegroupArn"],
        ids=frozenset([f"{cluster}/{name}"]),
        tags=entry.get("tags", {}),
        state=entry["status"],
        detail=f"{entry['scalingConfig']['desiredSize']} desired, in {cluster}",
        created=entry.get("createdAt"),
    )


@Listing(
    "Pod Identity association",
    "AWS::EKS::PodIdentityAssociation",
    arn_type="eks:podidentityassociation",
    permission="eks:ListClusters",
    entries="clusters[]",
    expand=described_associations,
    in_estimates=False,
)
def _associations(entry: Entry, _location: Location) -> Resource:
    arn = entry["associationArn"]
    return Resource(
        name=f"{entry['namespace']}/{entry['serviceAccount']}",
        arn=arn,
        ids=frozenset([arn]),
        tags=entry.get("tags", {}),
        detail=f"in {entry['clusterName']}",
        created=entry.get("createdAt"),
    )


LISTINGS = (_groups, _associations)

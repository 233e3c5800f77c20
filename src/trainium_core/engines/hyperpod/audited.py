"""The HyperPod clusters that an audit looks for."""

from trainium_core.audit.listings.listing import Entry, Listing, Location
from trainium_core.audit.listings.sagemaker import INSTANCES, of_sagemaker
from trainium_core.audit.resource import Resource


def _cluster(entry: Entry, _location: Location) -> Resource:
    return of_sagemaker(entry, "Cluster", state=entry["ClusterStatus"], charge=INSTANCES)


LISTINGS = (
    Listing(
        kind="HyperPod cluster",
        resource_type="AWS::SageMaker::Cluster",
        arn_type="sagemaker:cluster",
        service="sagemaker",
        operation="list_clusters",
        permission="sagemaker:ListClusters",
        entries="ClusterSummaries[]",
        read=_cluster,
    ),
)

"""SageMaker HyperPod: a Slurm or EKS cluster whose nodes SageMaker monitors and replaces."""

from trainium_core.audit.listings.listing import Entry, Listing, Location
from trainium_core.audit.listings.models import INSTANCES, of_sagemaker
from trainium_core.audit.resource import Resource
from trainium_core.engines.engine import Engine, ServiceLogs, ServiceNodes
from trainium_core.engines.hyperpod.aws_nodes import running_nodes
from trainium_core.engines.hyperpod.costs import cost_items, cost_notes
from trainium_core.engines.hyperpod.quota_check import check_hyperpod
from trainium_core.engines.hyperpod.warnings import hyperpod_warnings

_CLUSTER = "AWS::SageMaker::Cluster"


@Listing(
    "HyperPod cluster",
    _CLUSTER,
    arn_type="sagemaker:cluster",
    permission="sagemaker:ListClusters",
    entries="ClusterSummaries[]",
)
def _clusters(entry: Entry, _location: Location) -> Resource:
    return of_sagemaker(entry, "Cluster", state=entry["ClusterStatus"], charge=INSTANCES)


HYPERPOD = Engine(
    key="hyperpod",
    cost_items=cost_items,
    cost_notes=cost_notes,
    warnings=hyperpod_warnings,
    checks={"hyperpod": check_hyperpod},
    listings=(_clusters,),
    service_logs=ServiceLogs(prefix="/aws/sagemaker/Clusters/", resource_type=_CLUSTER),
    service_nodes=ServiceNodes(resource_type=_CLUSTER, called="HyperPod cluster", running=running_nodes),
    nodes_are_ec2_instances=False,
    can_sleep=False,
)

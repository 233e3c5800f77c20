"""Asks SageMaker for the nodes of a HyperPod cluster."""

from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService


def running_nodes(account: AwsService, cluster_arn: str) -> int:
    """How many instances the cluster has; 0 if it is not there. Raises UnavailableError."""
    with read_errors("sagemaker:DescribeCluster", absent=("ResourceNotFound",)):
        found = account.client("sagemaker").describe_cluster(ClusterName=cluster_arn)
        return sum(group.get("CurrentCount", 0) for group in found.get("InstanceGroups", []))
    return 0

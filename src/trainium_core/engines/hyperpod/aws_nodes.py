"""Reads the nodes of a HyperPod cluster from SageMaker."""

from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService


def running_nodes(account: AwsService, cluster_arn: str) -> int:
    """The number of instances in the cluster; 0 if the cluster does not exist.

    Raises:
        UnavailableError: A request failed or was denied.
    """
    with read_errors("sagemaker:DescribeCluster", absent=("ResourceNotFound",)):
        cluster = account.client("sagemaker").describe_cluster(ClusterName=cluster_arn)
        return sum(group.get("CurrentCount", 0) for group in cluster.get("InstanceGroups", []))
    return 0

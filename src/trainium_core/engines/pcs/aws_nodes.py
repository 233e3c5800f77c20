"""Reads the nodes of a compute node group: its bounds from AWS PCS, its instances from EC2."""

from collections.abc import Iterator, Mapping
from typing import Any

from trainium_core.engines.parts import ServiceNodes
from trainium_core.engines.pcs.slurm_settings import NODE_GROUP
from trainium_core.nodes.report import ServiceGroup, node_instance
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService

_GROUP_TAG = "tag:aws:pcs:compute-node-group-id"
_EXISTING = ("pending", "running", "stopping", "stopped", "shutting-down")


def running_nodes(account: AwsService, group_arn: str) -> int:
    """The number of instances in the group that are not terminated.

    Raises:
        UnavailableError: A request failed or was denied.
    """
    return len([*_instances(account, group_arn.rpartition("/")[2])])


def node_group(account: AwsService, cluster: str) -> ServiceGroup | None:
    """The bounds and instances of the group; None without a cluster of this name or without its group.

    The lower bound is the number of nodes that run without jobs.

    Raises:
        UnavailableError: A request failed or was denied.
    """
    with read_errors("pcs:GetComputeNodeGroup", absent=("ResourceNotFoundException",)):
        named = {"clusterIdentifier": cluster, "computeNodeGroupIdentifier": NODE_GROUP}
        group = account.client("pcs").get_compute_node_group(**named)["computeNodeGroup"]
        bounds = group["scalingConfiguration"]
        return ServiceGroup(
            least=bounds["minInstanceCount"],
            most=bounds["maxInstanceCount"],
            instances=tuple(
                node_instance(instance["InstanceId"], instance)
                for instance in sorted(_instances(account, group["id"]), key=lambda instance: instance["InstanceId"])
            ),
        )
    return None


def _instances(account: AwsService, group_id: str) -> Iterator[Mapping[str, Any]]:
    """EC2's descriptions of the group's instances. AWS PCS tags each instance with the ID of its group."""
    filters = [
        {"Name": _GROUP_TAG, "Values": [group_id]},
        {"Name": "instance-state-name", "Values": [*_EXISTING]},
    ]
    with read_errors("ec2:DescribeInstances"):
        pages = account.client("ec2").get_paginator("describe_instances").paginate(Filters=filters)
        yield from pages.search("Reservations[].Instances[]")


SERVICE_NODES = ServiceNodes(
    resource_type="AWS::PCS::ComputeNodeGroup",
    called="compute node group",
    running=running_nodes,
    group=node_group,
    login_group="LoginGroup",
    named=("AWS::PCS::Cluster", "AWS::PCS::ComputeNodeGroup"),
)

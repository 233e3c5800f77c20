"""Reads the nodes of a compute node group from EC2."""

from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService

_GROUP_TAG = "tag:aws:pcs:compute-node-group-id"
_BILLED = ("pending", "running", "stopping", "stopped", "shutting-down")


def running_nodes(account: AwsService, group_arn: str) -> int:
    """The number of instances in the group, whose ID AWS PCS stores in a tag. Raises UnavailableError."""
    filters = [
        {"Name": _GROUP_TAG, "Values": [group_arn.rpartition("/")[2]]},
        {"Name": "instance-state-name", "Values": [*_BILLED]},
    ]
    with read_errors("ec2:DescribeInstances"):
        pages = account.client("ec2").get_paginator("describe_instances").paginate(Filters=filters)
        return sum(len(entry["Instances"]) for page in pages for entry in page["Reservations"])
    return 0

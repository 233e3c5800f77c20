"""Ends nodes of EKS that failed their verification, and lowers the desired size of their groups.

Invoked every few minutes. It ends named instances: with only a lower desired size, Auto Scaling would choose which
instance ends, perhaps a verified one.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from trainium_runtime.log import log
from trainium_runtime.naming import RECORDS_TAG
from trainium_runtime.node_store import NodeStore
from trainium_wire.keys import RECORDS_PREFIX
from trainium_wire.node_record import StoredRecord

PATIENCE = timedelta(minutes=30)
"""How long a failed node runs before it is ended: time to look at it, to verify it again, and for EKS to repair it."""

_COUNTED = ("InService", "Pending")
"""The first words of the lifecycle states of instances that count toward the desired size.

A lifecycle hook of EKS keeps an ended node in Terminating:Wait, and running in EC2. If the size were lowered again for
it, Auto Scaling would end another node.
"""


class NotEndedError(Exception):
    """Failed nodes still run."""


def handle(event: dict[str, Any], context: object) -> None:  # noqa: ARG001
    import boto3

    bucket = os.environ["RECORDS_BUCKET"]
    instances = running_instances(boto3.client("ec2"), bucket)
    records = NodeStore(boto3.client("s3"), bucket, RECORDS_PREFIX).records()
    ended = nodes_to_end(instances, records, datetime.now(UTC))
    end_nodes(boto3.client("autoscaling"), {node: records[node].record.reason for node in ended})


def nodes_to_end(instances: Iterable[str], records: Mapping[str, StoredRecord], now: datetime) -> Sequence[str]:
    """The instances whose record has had a failed verification for at least PATIENCE.

    A node without a record, or with an invalid one, is not ended: its state is unknown.

    Args:
        instances: IDs of the running instances.
        records: The last record of each instance.
        now: The current time.
    """
    return [
        each
        for each in sorted(instances)
        if each in records and records[each].failed_verification and now - records[each].written >= PATIENCE
    ]


def running_instances(ec2: Any, bucket: str) -> Sequence[str]:
    """IDs of the running instances whose tag names the bucket of their records."""
    filters = [
        {"Name": f"tag:{RECORDS_TAG}", "Values": [bucket]},
        {"Name": "instance-state-name", "Values": ["running"]},
    ]
    pages = ec2.get_paginator("describe_instances").paginate(Filters=filters)
    return [i["InstanceId"] for page in pages for entry in page["Reservations"] for i in entry["Instances"]]


def end_nodes(autoscaling: Any, reasons: Mapping[str, str]) -> None:
    """End instances, and lower the desired size of their groups by one for each.

    Args:
        autoscaling: The client.
        reasons: Why each instance is ended, by ID.

    Raises:
        NotEndedError: AWS refused to end some of them. The others have been ended.
    """
    from botocore.exceptions import ClientError

    refused: list[str] = []
    for node, reason in reasons.items():
        try:
            described = autoscaling.describe_auto_scaling_instances(InstanceIds=[node])["AutoScalingInstances"]
            if any(not each["LifecycleState"].startswith(_COUNTED) for each in described):
                continue
            autoscaling.terminate_instance_in_auto_scaling_group(InstanceId=node, ShouldDecrementDesiredCapacity=True)
        except ClientError as error:
            log(refused=str(error), node=node, reason=reason)
            refused.append(node)
        else:
            log(ended=node, reason=reason)
    if refused:
        raise NotEndedError(f"failed nodes still run and are billed: {', '.join(refused)}")

"""Ends nodes of EKS that were not verified in time, and lowers the desired size of their groups.

Invoked every few minutes. It ends named instances: with only a lower desired size, Auto Scaling would choose which
instance ends, perhaps a verified one.
"""

import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from trainium_runtime.log import log
from trainium_runtime.naming import RECORDS_TAG
from trainium_runtime.node_store import NodeStore
from trainium_wire.formats import moment
from trainium_wire.keys import RECORDS_PREFIX
from trainium_wire.node_record import StoredRecord

PATIENCE = timedelta(minutes=30)
"""How long a failed node runs before it is ended: time to look at it, to verify it again, and for EKS to repair it."""

LONGEST_VERIFICATION = timedelta(hours=2)
"""How long a node without a record runs before it is ended. Boot, download of the image, the wait for the devices and
the tests take less: the tests end after 50 minutes (data/facts.toml, self_test; two attempts of the collectives)."""

_NO_RECORD = "no record after two hours: it did not join, or its verification did not start or end"

_COUNTED = ("InService", "Pending")
"""The first words of the lifecycle states of instances that count toward the desired size.

A lifecycle hook of EKS keeps an ended node in Terminating:Wait, and running in EC2. If the size were lowered again for
it, Auto Scaling would end another node.
"""


class NotEndedError(Exception):
    """Unverified nodes still run."""


def handle(event: dict[str, Any], context: object) -> None:  # noqa: ARG001
    import boto3

    bucket = os.environ["RECORDS_BUCKET"]
    launched = running_instances(boto3.client("ec2"), bucket)
    records = NodeStore(boto3.client("s3"), bucket, RECORDS_PREFIX).records(launched)
    end_nodes(boto3.client("autoscaling"), nodes_to_end(launched, records, datetime.now(UTC)))


def nodes_to_end(
    launched: Mapping[str, datetime], records: Mapping[str, StoredRecord], now: datetime
) -> Mapping[str, str]:
    """The instances to end, with the reasons.

    Those are instances whose verification has failed for at least PATIENCE, and instances that have run for
    LONGEST_VERIFICATION without a record: a node has the taint until its first record is stored. An instance with an
    invalid record is not ended: its state is unknown.

    Args:
        launched: The launch times of the running instances, by ID.
        records: The last record of each of these instances that has one.
        now: The current time.
    """
    ended = dict[str, str]()
    for node, at in sorted(launched.items()):
        stored = records.get(node)
        if stored is None:
            if now - at >= LONGEST_VERIFICATION:
                ended[node] = _NO_RECORD
        elif stored.failed_verification and now - _failed_since(stored, at) >= PATIENCE:
            ended[node] = stored.record.reason
    return ended


def _failed_since(stored: StoredRecord, launched: datetime) -> datetime:
    """When the verification failed first. Each new pod writes the record again, with the time of the first failure.

    The clock of a failed node may be wrong: S3 and EC2 limit its time.
    """
    return max(launched, min(stored.written, moment(stored.record.time) or stored.written))


def running_instances(ec2: Any, bucket: str) -> Mapping[str, datetime]:
    """The launch times, by ID, of the running instances whose tag names the bucket of their records."""
    filters = [
        {"Name": f"tag:{RECORDS_TAG}", "Values": [bucket]},
        {"Name": "instance-state-name", "Values": ["running"]},
    ]
    pages = ec2.get_paginator("describe_instances").paginate(Filters=filters)
    instances = (each for page in pages for entry in page["Reservations"] for each in entry["Instances"])
    return {each["InstanceId"]: each["LaunchTime"] for each in instances}


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
        raise NotEndedError(f"unverified nodes still run and are billed: {', '.join(refused)}")

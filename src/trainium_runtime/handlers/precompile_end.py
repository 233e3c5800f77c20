"""Terminates the host of `trn precompile` when its job has ended, and marks the job as failed when its host is lost.

Invoked for every report of a host, which says that the job has ended or that the host could not start. A report from a
host that is no longer in the group is ignored, so a late or duplicate report does not terminate the next host. Also
invoked when Auto Scaling could not launch a host or has terminated one: its job then fails.
"""

import json
import os
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from trainium_runtime.node_store import describe_group
from trainium_wire.formats import json_value, one_line
from trainium_wire.job import FAILED, end_record, job_end_record
from trainium_wire.job_keys import job_keys
from trainium_wire.keys import PRECOMPILE_PREFIX, instance_of_key

from .log import log

NOT_LAUNCHED, ENDED = "EC2 Instance Launch Unsuccessful", "EC2 Instance Terminate Successful"
_ABSENT = ("NoSuchKey", "404", "NotFound", "AccessDenied")
_EXISTS = ("PreconditionFailed", "ConditionalRequestConflict")
_LONGEST_REASON = 400  # characters
_LARGEST = 1_048_576
"""Bytes of a job or a report that are read."""


def handle(event: dict[str, Any], context: object) -> None:  # noqa: ARG001
    """Terminate the host or mark its job as failed. After an error, Lambda retries twice."""
    import boto3

    autoscaling = boto3.client("autoscaling")
    if event.get("source") == "aws.autoscaling":
        close_job(event, autoscaling, boto3.client("s3"), os.environ)
    else:
        terminate_host(event, autoscaling, os.environ["GROUP"])


def terminate_host(event: dict[str, Any], autoscaling: Any, group: str) -> bool:
    """Set the size of the group to 0, if the host of the event is in it.

    Returns:
        Whether the size was set.

    Raises:
        NoGroupError: The group does not exist.
    """
    instance = instance_of_key(event["detail"]["object"]["key"], PRECOMPILE_PREFIX)
    if instance not in describe_group(autoscaling, group).instances:
        log(ignored=instance, why="not in the group")
        return False
    _empty(autoscaling, group)
    log(ended=instance)
    return True


def close_job(event: dict[str, Any], autoscaling: Any, s3: Any, settings: Mapping[str, str]) -> bool:
    """Set the size of the group to 0, and mark the job as failed unless it has ended.

    Does neither without a job, or if the job was submitted after the activity of the event began: it gets another host.

    Args:
        event: The event of Auto Scaling.
        settings: GROUP, the Auto Scaling group; BUCKET; and JOB_KEY, the key of the host's job.

    Returns:
        Whether the job was marked.
    """
    detail = event["detail"]
    job = _read(s3, settings["BUCKET"], settings["JOB_KEY"])
    begun = datetime.fromisoformat(detail.get("StartTime") or event["time"])
    if job is None or datetime.fromisoformat(job["submitted_at"]) > begun:
        log(ignored=event["detail-type"], why="no job was submitted before it")
        return False
    # Otherwise Auto Scaling launches another host.
    _empty(autoscaling, settings["GROUP"])
    end = job_end_record(end_record(FAILED, _reason(event, s3, settings)), attempts=0)
    key = job_keys(job["id"]).end
    from botocore.exceptions import ClientError

    try:
        s3.put_object(
            Bucket=settings["BUCKET"],
            Key=key,
            Body=json.dumps(end).encode(),
            ContentType="application/json",
            IfNoneMatch="*",
        )
    except ClientError as error:
        if error.response["Error"]["Code"] in _EXISTS:
            return False
        raise
    log(closed=job["id"], reason=end["reason"])
    return True


def _reason(event: Mapping[str, Any], s3: Any, settings: Mapping[str, str]) -> str:
    detail = event["detail"]
    if event["detail-type"] == NOT_LAUNCHED:
        return one_line(
            f"EC2 did not launch a host: {detail.get('StatusMessage') or 'no reason given'}", _LONGEST_REASON
        )
    report = _report(s3, settings["BUCKET"], detail["EC2InstanceId"])
    if report is not None and report.get("state") == "failed":
        return one_line(f"the host could not start: {report.get('reason')}", _LONGEST_REASON)
    cause = f" ({detail['Cause']})" if detail.get("Cause") else ""
    return one_line(f"the host was terminated before its job ended{cause}", _LONGEST_REASON)


def _report(s3: Any, bucket: str, instance_id: str) -> dict[str, Any] | None:
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{PRECOMPILE_PREFIX}/")
    listed = [str(item["Key"]) for page in pages for item in page.get("Contents", [])]
    key = next((key for key in listed if instance_of_key(key, PRECOMPILE_PREFIX) == instance_id), None)
    return _read(s3, bucket, key) if key else None


def _read(s3: Any, bucket: str, key: str) -> dict[str, Any] | None:
    """The JSON object at a key; None if there is none, or if it is invalid or larger than _LARGEST."""
    from botocore.exceptions import ClientError

    try:
        value = json_value(s3.get_object(Bucket=bucket, Key=key)["Body"].read(_LARGEST))
    except ClientError as error:
        if error.response["Error"]["Code"] in _ABSENT:
            return None
        raise
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _empty(autoscaling: Any, group: str) -> None:
    autoscaling.set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=0, HonorCooldown=False)

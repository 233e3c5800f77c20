"""Reads the nodes' usage reports and the state of their job from the bucket of the node records.

Callers pass the client: the Lambda functions and the command line create clients and handle errors differently.
"""

import json
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from typing import Any

from trainium_runtime.errors import ABSENT_OBJECT
from trainium_runtime.usage import ClusterUsage, LastJob, cluster_usage
from trainium_wire.formats import json_value
from trainium_wire.job import Outcome
from trainium_wire.job_keys import job_keys
from trainium_wire.keys import CURRENT_JOB_KEY, USAGE_PREFIX, key_instance
from trainium_wire.usage import NodeUsage

_READERS = 16
_LARGEST_END = 262_144
_LARGEST = 16_384  # bytes of a report that are read; a valid report has less than half


def read_usage(s3: Any, bucket: str, instances: Collection[str], job: LastJob | None, *, now: datetime) -> ClusterUsage:
    """The usage of the cluster with these instances and this last job.

    Raises:
        BotoCoreError: S3 was not reached.
        ClientError: S3 refused a request.
    """
    if job and job.ended is None:
        return cluster_usage(instances, {}, job, now=now)
    return cluster_usage(instances, read_reports(s3, bucket, instances), job, now=now)


def read_reports(
    s3: Any, bucket: str, instances: Collection[str], *, or_stored_after: datetime | None = None
) -> Mapping[str, NodeUsage]:
    """The readable usage reports by instance.

    Args:
        instances: The instances whose reports are read.
        or_stored_after: Reports that were stored after this time are read too, of any instance.

    Raises:
        BotoCoreError: S3 was not reached.
        ClientError: S3 refused a request.
    """
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{USAGE_PREFIX}/")
    listed = [(key_instance(item["Key"], USAGE_PREFIX), item) for page in pages for item in page.get("Contents", [])]
    keys = {
        instance: item["Key"]
        for instance, item in listed
        if instance and (instance in instances or (or_stored_after and item["LastModified"] > or_stored_after))
    }
    with ThreadPoolExecutor(_READERS) as readers:
        reports = readers.map(partial(_node_usage, s3, bucket), keys.values())
        return {instance: usage for instance, usage in zip(keys, reports, strict=True) if usage}


def _node_usage(s3: Any, bucket: str, key: str) -> NodeUsage | None:
    """The usage report at a key. None if there is no object, or if it is not a usage report."""
    response = _get(s3, bucket, key)
    try:
        return NodeUsage.from_json(response["Body"].read(_LARGEST).decode()) if response else None
    except ValueError:
        return None


def read_last_job(s3: Any, bucket: str) -> LastJob | None:
    """The job that the nodes run, or ran last; None if there was none.

    Raises:
        BotoCoreError: S3 was not reached.
        ClientError: S3 refused a request.
        ValueError: The job cannot be parsed.
    """
    response = _get(s3, bucket, CURRENT_JOB_KEY)
    if not response:
        return None
    spec = json.loads(response["Body"].read())
    if not isinstance(spec, dict) or "id" not in spec:
        raise ValueError(f"{CURRENT_JOB_KEY} is not a job")
    end = _get(s3, bucket, job_keys(str(spec["id"])).end)
    if not end:
        return LastJob(job_id=str(spec["id"]))
    return LastJob(job_id=str(spec["id"]), ended=end["LastModified"], result=_result(end["Body"].read(_LARGEST_END)))


def _result(end: bytes) -> str:
    """The result in the record of a job's end; `failed` if it is invalid, because nodes write it."""
    try:
        raw = json_value(end)
    except ValueError:
        raw = {}
    return Outcome.from_record(raw if isinstance(raw, dict) else {}).result


def _get(s3: Any, bucket: str, key: str) -> Any:
    from botocore.exceptions import ClientError

    try:
        return s3.get_object(Bucket=bucket, Key=key)
    except ClientError as error:
        if error.response["Error"]["Code"] in ABSENT_OBJECT:
            return None
        raise

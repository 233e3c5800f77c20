"""Jobs of `trn run` as S3 stores them: ends, logs and results."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from tools.lab.laboratory import Laboratory
from tools.lab.waiting import wait_for
from trainium_wire.keys import JOBS_PREFIX

LOOK_SECONDS = 0.5
DEADLINE_SECONDS = 600
"""Time limit of every wait: a busy machine may take ten times as long as an idle one."""

Value = TypeVar("Value")

PROGRESS = re.compile(r"TRN step=(\d+) loss=(\S+)")
_FIRST_STEP = re.compile(r"rank (\d+): first step at ([\d.]+)$", re.MULTILINE)


class StoredJobs:
    """The jobs in a bucket.

    Args:
        count: The maximum number of nodes of each job.
    """

    def __init__(self, lab: Laboratory, bucket: str, *, count: int) -> None:
        self.lab, self.bucket, self.count = lab, bucket, count
        self.s3 = lab.client("s3")
        self._parts: dict[tuple[str, str], bytes] = {}

    def end_of(self, job: str, attempt: int | None = None) -> dict[str, Any]:
        """Wait for the end of a job, or of one of its attempts, and return the content of end.json."""
        key = "end.json" if attempt is None else f"attempts/{attempt}/end.json"
        return self.wait_for(f"{key} of {job}", lambda: self.content(job, key))

    def wait_for(self, description: str, condition: Callable[[], Value | None]) -> Value:
        """Wait with long pauses, because a check takes CPU time from nodes, and a time limit for slow machines."""
        return wait_for(description, condition, seconds=DEADLINE_SECONDS, pause=LOOK_SECONDS)

    def content(self, job: str, key: str) -> dict[str, Any] | None:
        """An object of a job, or None if it does not exist."""
        content = self.object(job, key)
        return None if content is None else json.loads(content)

    def object(self, job: str, key: str) -> bytes | None:
        return self._get(f"{JOBS_PREFIX}/{job}/{key}")

    def objects(self, job: str) -> Mapping[str, bytes]:
        """All objects of a job in the cluster's bucket, by key."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=f"{JOBS_PREFIX}/{job}/")
        keys = [item["Key"] for page in pages for item in page.get("Contents", [])]
        return {key: self._get(key) or b"" for key in keys}

    def log(self, job: str, attempt: int, node: int) -> str:
        """The log of a node so far."""
        prefix = f"{JOBS_PREFIX}/{job}/attempts/{attempt}/logs/node-{node}/"
        objects = self.s3.list_objects_v2(Bucket=self.bucket, Prefix=prefix).get("Contents", [])
        return b"".join(self._part(item["Key"], item["ETag"]) for item in objects).decode(errors="replace")

    def losses(self, job: str, attempt: int) -> Mapping[int, str]:
        """The losses as node 0 printed them, by step."""
        return {int(step): loss for step, loss in PROGRESS.findall(self.log(job, attempt, 0))}

    def first_steps(self, job: str, attempt: int) -> Mapping[int, float]:
        """When each process took its first step, in seconds since 1970, by rank."""
        logs = "".join(self.log(job, attempt, node) for node in range(self.count))
        return first_steps(logs)

    def _part(self, key: str, etag: str) -> bytes:
        """A part of a log, read once."""
        if (key, etag) not in self._parts:
            self._parts[key, etag] = self._get(key) or b""
        return self._parts[key, etag]

    def _get(self, key: str) -> bytes | None:
        try:
            return self.s3.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        except self.s3.exceptions.NoSuchKey:
            return None


def first_steps(log: str) -> Mapping[int, float]:
    """When each process took its first step, in seconds since 1970, by rank."""
    return {int(rank): float(time) for rank, time in _FIRST_STEP.findall(log)}

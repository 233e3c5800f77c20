"""`trn-node precompile`: runs the job of the host of `trn precompile`.

The host runs one job, as the only node of a cluster, and reports its end. The host has only S3 permissions, so a Lambda
function terminates it. Until then, the host repeats the report.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from trainium_wire.formats import now_text
from trainium_wire.keys import PRECOMPILE_JOB_KEY, instance_key

from . import files, record
from .cluster_job import ClusterJob
from .imds import Imds
from .objects import Objects
from .watch import NOTICE, TICK, log

REPORT_SECONDS = 60
IDLE_SECONDS = 600
"""A host that finds no job in this time reports that it is done. The job is written before the host is launched."""

OVER = "over"


class SingleNode:
    """A cluster of only this instance, for a job of one node."""

    version = ""
    is_sound = True

    def __init__(self, instance_id: str, address: str) -> None:
        self.nodes = {instance_id: address}
        self.read_at = float("inf")
        self.expects_membership = False


class PrecompileHost:
    """The host. `step` does what is due.

    Args:
        own_record: Record of this instance.
        s3: Requests to S3.
        now: The time in seconds since 1970.
    """

    def __init__(self, own_record: dict[str, Any], s3: Objects, now: Callable[[], float] = time.time) -> None:
        self._record, self._s3, self._now = own_record, s3, now
        self._single_node = SingleNode(own_record["instance_id"], own_record["address"])
        self._job = ClusterJob(s3, log, now, NOTICE, PRECOMPILE_JOB_KEY)
        self._started = now()
        self._report_due = 0.0
        self._message = ""

    def step(self) -> None:
        """Do what is due. Failed requests to S3 are retried at the next step."""
        message = ""
        try:
            self._job.poll(self._record, self._single_node)
            if (self._job.is_over or self._is_idle) and self._now() >= self._report_due:
                self._report()
        except (OSError, ValueError, LookupError, TypeError) as error:
            message = f"{type(error).__name__}: {error}"
        if message != self._message:
            log(message or "works again")
        self._message = message

    @property
    def _is_idle(self) -> bool:
        return not self._job.is_known and self._now() - self._started > IDLE_SECONDS

    def _report(self) -> None:
        name = files.own_name(self._record["instance_id"])
        url = instance_key(files.location("TRN_REPORT_URL").rstrip("/"), name)
        self._s3.put(url, json.dumps({**self._record, "state": OVER, "time": now_text()}).encode())
        self._report_due = self._now() + REPORT_SECONDS
        log("reported that nothing is left to do")


def main() -> None:
    """Run the job, and report until the instance is terminated."""
    imds = Imds()
    own_record = record.make("proven", [], imds)
    host = PrecompileHost(own_record, Objects(imds, retries=1))
    while True:
        host.step()
        time.sleep(TICK)

"""The pods of one start of a job: each says in S3 that it runs, and the first waits for the others."""

from __future__ import annotations

import time
from typing import Any

from trainium_wire.job import FAILED, end_record
from trn_job.scheduled_attempts import OverError, ScheduledAttempts
from trn_node.objects import Objects

LOOK_SECONDS = 2.0
MOST_NAMED = 20
"""Missing pods that a message names."""


class Pods:
    """The pods of one start of a job by JobSet.

    Args:
        attempts: The attempts of the job.
        s3: Requests to S3.
        start: What distinguishes this start of the job from others.
        rank: Index of this pod.
        seconds: How long to wait for the other pods.
    """

    def __init__(self, attempts: ScheduledAttempts, s3: Objects, *, start: str, rank: int, seconds: float) -> None:
        self._attempts, self._s3, self._start, self._rank = attempts, s3, start, rank
        self._seconds = seconds
        # All pods of a start read the same number: the first writes the next start only when all of them run.
        begun = len(attempts.starts())
        attempts.refuse_second_submission(begun)  # before this pod waits for others, which holds a billed node
        self.attempt = begun + 1

    def join(self, *, address: str, node: str) -> dict[str, Any]:
        """Wait for all pods. Returns the start of the attempt, which the first pod writes.

        Args:
            address: Address of this pod.
            node: Name of its node.

        Raises:
            OverError: The job is over, or a pod is missing.
            OSError: S3 does not answer or refuses.
            ValueError: The job is invalid.
        """
        attempts, keys = self._attempts, self._attempts.attempt(self.attempt)
        attempts.store.write(keys.ready(self._start, str(self._rank)), {"address": address, "node": node})
        end = time.monotonic() + self._seconds
        while True:
            missing = self._missing() if self._rank == 0 else self._first_is_missing()
            if not missing and self._rank == 0:
                attempts.begin(self._nodes(), self._start)
            start = attempts.store.read(keys.start)
            if start is not None:
                if start["membership"] != self._start:
                    raise OSError(f"attempt {self.attempt} of the job was begun by other pods")
                return start
            self._raise_if_over()
            if time.monotonic() > end:
                self._give_up(missing)
            time.sleep(LOOK_SECONDS)

    def _missing(self) -> list[int]:
        """The indexes of the pods that have not said that they run."""
        prefix = self._attempts.attempt(self.attempt).ready_nodes(self._start)
        found = {stored.key.rpartition("/")[2] for stored in self._s3.list(f"{self._attempts.url}/{prefix}")}
        return [rank for rank in range(self._attempts.spec.nodes) if f"{rank}.json" not in found]

    def _first_is_missing(self) -> list[int]:
        key = self._attempts.attempt(self.attempt).ready(self._start, "0")
        return [] if self._attempts.store.read(key) else [0]

    def _nodes(self) -> dict[str, str]:
        """Addresses of the pods by the names of their nodes, in the order of indexes."""
        keys, nodes = self._attempts.attempt(self.attempt), dict[str, str]()
        for rank in range(self._attempts.spec.nodes):
            stored = self._attempts.store.read(keys.ready(self._start, str(rank))) or {}
            name = stored["node"].partition(".")[0]
            nodes[f"{name}-{rank}" if name in nodes else name] = stored["address"]
        return nodes

    def _raise_if_over(self) -> None:
        over = self._attempts.store.read(self._attempts.keys.end)
        if over is None:
            over = self._attempts.stopped()
            if over is not None:
                self._attempts.close(self.attempt - 1, over)
        if over is not None:
            raise OverError(over)

    def _give_up(self, missing: list[int]) -> None:
        """End the job: a pod that waits holds a node that is billed. Raises OverError."""
        count, named = self._attempts.spec.nodes, ", ".join(map(str, missing[:MOST_NAMED]))
        more = f" and {len(missing) - MOST_NAMED} more" if len(missing) > MOST_NAMED else ""
        pods = f"the pods with index {named}{more} of {count} were missing"
        what = pods if missing else "the first pod did not begin"
        end = end_record(FAILED, f"after {self._seconds / 60:g} minutes, {what}", node=self._rank)
        self._attempts.close(self.attempt - 1, end)
        raise OverError(end)

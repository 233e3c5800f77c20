"""The pods of one start of a job: the first calls the others, which answer in S3, and begins the attempt."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from trainium_wire.job import FAILED, end_record
from trainium_wire.job_keys import AttemptKeys
from trn_job.outputs import is_refusal
from trn_job.scheduled_attempts import BegunElsewhereError, OverError, ScheduledAttempts
from trn_node.objects import Objects

LOOK_SECONDS = 2.0
MOST_NAMED = 20
"""Missing pods that a message names."""


class Pods:
    """The pods of one start of a job by JobSet.

    A JobSet that was suspended starts its pods again with the same name and number of restarts. So the first pod calls
    the others with a new name each time it starts, and counts only the answers to this call.

    Args:
        attempts: The attempts of the job.
        s3: Requests to S3.
        start: A name that all pods of a start have. Pods of other starts may have it, too.
        rank: Index of this pod.
        say: Called with an error after which the request is repeated.
    """

    def __init__(
        self, attempts: ScheduledAttempts, s3: Objects, *, start: str, rank: int, say: Callable[[str], None]
    ) -> None:
        self._attempts, self._s3, self._start, self._rank, self._say = attempts, s3, start, rank, say
        self._number = 0
        self._call = ""

    def join(self, *, address: str, node: str, seconds: float) -> dict[str, Any]:
        """Wait for all pods. Returns the start of the attempt, which the first pod writes.

        Args:
            address: Address of this pod.
            node: Name of its node.
            seconds: How long to wait for the other pods, and for S3 while it is unavailable.

        Raises:
            OverError: The job is over, or a pod is missing.
            BegunElsewhereError: Another submission or start has begun the attempt.
            OSError: S3 does not answer or refuses.
            ValueError: The job is invalid.
        """
        end, self_description = time.monotonic() + seconds, {"address": address, "node": node}
        while True:
            is_late = time.monotonic() > end
            try:
                start, missing = self._look(self_description)
                if start is not None:
                    return start
                if is_late:
                    self._give_up(missing, seconds)
            except OSError as error:
                if is_late or is_refusal(error):
                    raise
                self._say(f"{error}; retrying")
            time.sleep(LOOK_SECONDS)

    def _look(self, self_description: dict[str, Any]) -> tuple[dict[str, Any] | None, list[int]]:
        """The start of the attempt, if it has begun, and the indexes of the pods that are missing.

        Can be repeated after an OSError.
        """
        attempts = self._attempts
        if not self._number:
            starts = attempts.starts()
            attempts.refuse_second_submission(starts)  # before this pod waits for others, which holds a billed node
            # All pods of a start read the same number: the first begins the next attempt only when all of them run.
            self._number = len(starts) + 1
        missing = self._call_others(self_description) if self._rank == 0 else self._answer(self_description)
        start = attempts.store.read(self._keys.start)
        if start is None and self._rank == 0 and not missing:
            attempts.begin(self._nodes(), self._call)
            start = attempts.store.read(self._keys.start)
        if start is None:
            self._raise_if_over()
        elif start["membership"] != self._call:
            raise BegunElsewhereError(f"attempt {self._number} of the job was begun by other pods")
        return start, missing

    @property
    def _keys(self) -> AttemptKeys:
        return self._attempts.attempt(self._number)

    def _call_others(self, self_description: dict[str, Any]) -> list[int]:
        """Call the other pods. Returns the indexes of those that have not answered."""
        store, keys = self._attempts.store, self._keys
        if not self._call:
            call = uuid4().hex
            store.write(keys.ready(call, "0"), self_description)
            store.write(keys.ready(self._start, "0"), {"call": call})
            self._call = call
        found = {stored.key.rpartition("/")[2] for stored in self._s3.list(self._url(keys.ready_nodes(self._call)))}
        return [rank for rank in range(self._attempts.spec.nodes) if f"{rank}.json" not in found]

    def _answer(self, self_description: dict[str, Any]) -> list[int]:
        """Answer the newest call of the first pod. Returns its index without a call."""
        store, keys = self._attempts.store, self._keys
        call = (store.read(keys.ready(self._start, "0")) or {}).get("call", "")
        if call != self._call:
            store.write(keys.ready(call, str(self._rank)), self_description)
            self._call = call
        return [] if call else [0]

    def _url(self, key: str) -> str:
        return f"{self._attempts.url}/{key}"

    def _nodes(self) -> dict[str, str]:
        """Addresses of the pods by the names of their nodes, in the order of indexes."""
        nodes = dict[str, str]()
        for rank in range(self._attempts.spec.nodes):
            stored = self._attempts.store.read(self._keys.ready(self._call, str(rank))) or {}
            name = stored["node"].partition(".")[0]
            nodes[f"{name}-{rank}" if name in nodes else name] = stored["address"]
        return nodes

    def _raise_if_over(self) -> None:
        over = self._attempts.store.read(self._attempts.keys.end)
        if over is None:
            over = self._attempts.stopped()
            if over is not None:
                self._attempts.close(self._number - 1, over)
        if over is not None:
            raise OverError(over)

    def _give_up(self, missing: list[int], seconds: float) -> None:
        """End the job: a pod that waits holds a node that is billed. Raises OverError."""
        count, named = self._attempts.spec.nodes, ", ".join(map(str, missing[:MOST_NAMED]))
        more = f" and {len(missing) - MOST_NAMED} more" if len(missing) > MOST_NAMED else ""
        pods = f"the pods with index {named}{more} of {count} were missing"
        what = pods if missing else "the first pod did not begin"
        end = end_record(FAILED, f"after {seconds / 60:g} minutes, {what}", node=self._rank)
        self._attempts.close(self._number - 1, end)
        raise OverError(end)

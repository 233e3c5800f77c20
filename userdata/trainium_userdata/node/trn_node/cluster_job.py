"""The cluster's job: this node's part, and the decisions of the first node for all."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from trainium_wire.formats import json_value
from trainium_wire.job import (
    STOPPED,
    TIME_LIMIT,
    Job,
    Outcome,
    end_record,
    job_end_record,
    start_record,
)
from trainium_wire.job_keys import AttemptKeys, JobKeys, job_keys
from trainium_wire.keys import CURRENT_JOB_KEY, JOBS_PREFIX
from trainium_wire.restarts import restart_pause

from . import files, job_cache
from .cluster import ClusterMembership, folder, unreachable
from .job_attempts import READY_SECONDS, ended_attempts, neighbours, resumption, unready
from .job_unit import JobUnit
from .metrics import JOB_METRICS
from .notices import timestamp
from .objects import Objects

CLOSE_SECONDS = 60
"""How long the other nodes wait for the first node to end a job whose last attempt has ended."""

SHORTEST_SECONDS, LONGEST_SECONDS = 1, 5
"""Bounds of the interval between polls. Short, because users wait after submitting a job."""
POLLS_PER_SECOND = 200
"""Of all nodes together: S3 allows 5,500 reads per second and prefix, and each node needs a dozen when a job starts."""
ENDING_SECONDS = 0.2
"""Seconds between polls while systemd stops the remaining processes of a job on this node."""


class ClusterJob:
    """The job on this node. `poll` does what is due.

    Args:
        s3: Requests to S3.
        log: Writes a line of text.
        now: The time in seconds since 1970.
        notice: File with the notice that this node will be interrupted.
    """

    def __init__(self, s3: Objects, log: Callable[[str], None], now: Callable[[], float], notice: str) -> None:
        self._s3, self._log, self._now, self._notice = s3, log, now, notice
        self._unit = JobUnit()
        self._etag = ""
        self._is_first = self._active = False
        self._nodes = 0
        self._reset(None)

    def _reset(self, spec: Job | None) -> None:
        self._spec = spec
        self._is_over = False
        self._attempt = 0
        self._start: dict[str, Any] = {}
        self._earlier: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self._pause: int | None = None
        self._decided_attempt = 0
        self._ready_at = 0.0
        self._first_at = 0.0
        self._end: dict[str, Any] | None = None
        self._end_seen = 0.0
        self._last_message = ""

    @property
    def seconds(self) -> float:
        """Seconds between polls. The first node, for which all others wait, polls often in clusters of any size, unless
        an attempt is running here."""
        if self._active:
            return ENDING_SECONDS if self._unit.is_ending else LONGEST_SECONDS
        if not self._nodes:
            return LONGEST_SECONDS
        shared = SHORTEST_SECONDS if self._is_first else self._nodes / POLLS_PER_SECOND
        return min(max(shared, SHORTEST_SECONDS), LONGEST_SECONDS)

    def wait(self, seconds: float) -> bool:
        """Wait until the time is over or this node's part of the job ends. Returns whether it ended."""
        return self._unit.wait(seconds)

    def poll(self, record: dict[str, Any], cluster: ClusterMembership) -> None:
        """Do what is due for the job.

        Args:
            record: Record of this node.
            cluster: The nodes on which the job can run.

        Raises:
            OSError: S3 does not answer or refuses.
            ValueError, LookupError, TypeError: An object of the job is invalid.
        """
        self._nodes = len(cluster.nodes)
        self._is_first = next(iter(cluster.nodes), None) == record["instance_id"]
        self._read_spec()
        if not self._spec or self._is_over:
            self._active = False
            return
        self._active = self._unit.is_active()
        # While the attempt runs here, its own program reads the end.
        if not self._active:
            self._follow()
            if self._attempt and not self._end:
                self._join(record)
            elif self._read(self._keys.end) is not None:
                self._is_over = True
                self._log(f"job {self._job}: over")
                return
        # A lost node may be replaced by one that is only in a newer membership.
        cluster.expects_membership = bool(self._end) and not self._is_over
        if self._may_restart and not self._active:
            self._say_ready(record, cluster)
        if self._is_first:
            self._lead(record, cluster)
        elif not self._active and self._end and not self._may_restart and self._now() - self._end_seen > CLOSE_SECONDS:
            self._close(self._end)

    @property
    def open_job(self) -> str:
        """ID of the job, if it has not ended; otherwise empty."""
        return self._job if self._spec and not self._is_over else ""

    @property
    def progress(self) -> tuple[str, int, bool]:
        """The open job, its last attempt, and whether this attempt is known to have ended."""
        return self.open_job, self._attempt, bool(self._end)

    def attempt_on(self, instance_id: str) -> int | None:
        """The attempt of the open job on an instance; 0 if it waits for nodes. None if it does not hold the instance.

        Between two attempts, the job holds the instances of the last one.
        """
        if self._active:
            job, attempt, _ = self._unit.begun()
            return attempt if job == self._job else None  # The unit may still store the results of the last job.
        names = [node["instance_id"] for node in self._start.get("nodes", [])]
        return self._attempt if self.open_job and (not names or instance_id in names) else None

    @property
    def _job(self) -> str:
        return self._wanted.id

    @property
    def _wanted(self) -> Job:
        assert self._spec
        return self._spec

    @property
    def _keys(self) -> JobKeys:
        return job_keys(self._job, self._jobs_url)

    @property
    def _attempt_keys(self) -> AttemptKeys:
        return self._keys.attempt(self._attempt)

    @property
    def _next_keys(self) -> AttemptKeys:
        return self._keys.attempt(self._attempt + 1)

    @property
    def _jobs_url(self) -> str:
        return f"{folder()}/{JOBS_PREFIX}"

    def _read_spec(self) -> None:
        found = self._s3.get(f"{folder()}/{CURRENT_JOB_KEY}", self._etag)
        if not found:
            return
        try:
            spec = Job.from_json(found[0])
        except ValueError as error:
            raise ValueError(f"{CURRENT_JOB_KEY} is {error}") from None
        self._etag = found[1]
        if not self._spec or spec.id != self._spec.id:
            self._reset(spec)
            self._log(f"job {self._job}: found")

    def _follow(self) -> None:
        """Find the newest attempt and its end. An attempt without an end is the last one."""
        while True:
            if self._attempt and not self._end:
                self._read_end()
                if not self._end:
                    return
            start = self._read(self._next_keys.start)
            if not start:
                return
            self._set_attempt(start)

    def _set_attempt(self, start: dict[str, Any]) -> None:
        if self._end:
            self._earlier.append((self._start, self._end))
        self._attempt, self._start, self._end = self._attempt + 1, start, None
        self._first_at = self._first_at or timestamp(start["at"])

    def _read_end(self) -> None:
        self._end = self._read(self._attempt_keys.end)
        self._end_seen = self._now()

    def _join(self, record: dict[str, Any]) -> None:
        """Start this node's part of the attempt, or end the attempt if this part cannot start or has been lost."""
        names = [node["instance_id"] for node in self._start.get("nodes", [])]
        if self._end or record["instance_id"] not in names:
            return
        rank = names.index(record["instance_id"])
        name = f"node {rank} ({record['instance_id']})"
        job, attempt, this_boot = self._unit.begun()
        if (job, attempt) == (self._job, self._attempt):
            why = "the job's processes were ended" if this_boot else "it was restarted"
            self._declare("node-lost", f"{name} has left the job: {why}", record, rank)
        elif record["state"] != "verified":
            self._declare(
                "failed", f"{name} is not verified: {record['state']} {record['reason']}".strip(), record, rank
            )
        else:
            self._log(f"job {self._job}: starts attempt {self._attempt} as node {rank}")
            try:
                self._unit.start(self._job, self._attempt, self._launch(rank))
                self._active = self._unit.is_active()
            except (OSError, ValueError, LookupError) as error:
                self._declare("failed", f"{name} cannot start the job: {error}", record, rank)

    def _launch(self, rank: int) -> dict[str, Any]:
        stack = self._wanted.stack
        environment = job_cache.framework_environment(stack)
        return {
            "url": self._jobs_url,
            "spec": self._wanted.as_record(),
            "attempt": self._attempt,
            "rank": rank,
            "nodes": self._start["nodes"],
            "resume_from": self._start["resume_from"],
            "resume_job": self._start["resume_job"],
            "seconds_left": self._start["seconds_left"],
            "notice_file": str(files.path(self._notice)),
            "metrics_file": str(files.path(JOB_METRICS)),
            "venv": str(environment[1]) if environment else None,
            "compile_cache": job_cache.compile_cache(stack) if self._wanted.compile_cache else None,
        }

    def _lead(self, record: dict[str, Any], cluster: ClusterMembership) -> None:
        """The task of the first node of the membership: start attempts, detect lost nodes, end the job."""
        if self._active and self._attempt and not self._end:
            self._read_end()
        if self._attempt and not self._end:
            lost = [node for node in self._start["nodes"] if cluster.nodes.get(node["instance_id"]) != node["address"]]
            if lost:
                names = ", ".join(node["instance_id"] for node in lost)
                self._declare("node-lost", f"no longer in the cluster: {names}", record, None)
            return
        if self._active:
            return
        if self._end and self._restart_pause() is None:
            self._close(self._end)
            return
        stop = self._read(self._keys.stop)
        if stop is not None:
            self._close(end_record(STOPPED, str(stop.get("reason") or ""), instance_id=record["instance_id"], node=0))
        elif self._seconds_left() == 0:
            limit = self._wanted.time_limit_seconds
            why = f"the job reached its time limit of {limit} seconds"
            self._close(end_record(TIME_LIMIT, why, instance_id=record["instance_id"], node=0))
        elif (
            record["state"] == "verified" and cluster.is_sound and not (self._end and cluster.read_at <= self._end_seen)
        ):
            self._begin(record, cluster)

    def _begin(self, record: dict[str, Any], cluster: ClusterMembership) -> None:
        """Start the next attempt if there are enough nodes and, after an attempt, if they are all ready for it.

        If the job is to continue from another job without a complete checkpoint, end it.
        """
        wanted = self._wanted.nodes
        nodes = dict(list(cluster.nodes.items())[:wanted])
        if len(nodes) < wanted:
            self._log_once(f"waits: {len(nodes)} of {wanted} nodes are in the membership")
            return
        if self._end:
            pause = self._restart_pause() or 0
            if self._now() < self._end_seen + pause:
                self._log_once(f"waits {pause} seconds before attempt {self._attempt + 1}")
                return
            missing = unready(self._s3.list(self._next_keys.ready_nodes(cluster.version)), nodes)
            if missing:
                self._log_once(f"waits: not ready for attempt {self._attempt + 1}: {', '.join(missing)}")
                return
        checkpoint, job, saved_at = resumption(self._s3, self._wanted, self._attempt, self._jobs_url)
        if job != self._job and not checkpoint:
            why = f"job {job} has no complete checkpoint to continue from"
            self._close(end_record("failed", why, instance_id=record["instance_id"], node=0))
            return
        start = start_record(
            self._attempt + 1,
            nodes,
            membership=cluster.version,
            checkpoint=checkpoint,
            checkpoint_job=job,
            checkpoint_saved_at=saved_at,
            seconds_left=self._seconds_left(),
        )
        if not self._s3.create(self._next_keys.start, json.dumps(start).encode()):
            # Written by an earlier request without a response, or by an earlier first node.
            self._follow()
            return
        self._set_attempt(start)
        self._log(f"job {self._job}: attempt {self._attempt}, nodes: {wanted}, from {checkpoint or 'the beginning'}")
        # Not at the next poll, because users wait after submitting a job.
        self._join(record)

    def _seconds_left(self) -> float | None:
        limit = self._wanted.time_limit_seconds
        if limit is None or not self._first_at:
            return limit
        return max(0, self._first_at + limit - self._now())

    @property
    def _may_restart(self) -> bool:
        """Whether the last attempt has ended such that another one may follow."""
        return bool(self._end) and self._wanted.may_restart(Outcome.from_record(self._end or {}))

    def _restart_pause(self) -> int | None:
        """Seconds between the end of the last attempt and the next; None if no other attempt follows."""
        if not self._may_restart:
            return None
        if self._decided_attempt != self._attempt:
            checkpoint = resumption(self._s3, self._wanted, self._attempt, self._jobs_url)
            history = [*self._earlier, (self._start, self._end or {})]
            attempts = ended_attempts(self._s3, self._wanted, history, checkpoint, self._jobs_url)
            self._pause, self._decided_attempt = restart_pause(self._wanted, attempts), self._attempt
        return self._pause

    def _say_ready(self, record: dict[str, Any], cluster: ClusterMembership) -> None:
        """Say that this node is ready for the next attempt: it is verified, and reaches its neighbours."""
        own, names = record["instance_id"], list(cluster.nodes)[: self._wanted.nodes]
        is_due = not 0 <= self._now() - self._ready_at < READY_SECONDS
        is_sound = record["state"] == "verified" and cluster.is_sound and cluster.read_at > self._end_seen
        if own not in names or not is_due or not is_sound:
            return
        silent = unreachable(cluster.nodes[names[rank]] for rank in neighbours(names.index(own), len(names)))
        if silent:
            self._log_once(f"not ready for attempt {self._attempt + 1}: no answer from {', '.join(sorted(silent))}")
            return
        self._s3.put(self._next_keys.ready(cluster.version, own), b"{}")
        self._ready_at = self._now()

    def _close(self, end: dict[str, Any]) -> None:
        self._s3.create(self._keys.end, json.dumps(job_end_record(end, self._attempt)).encode())
        self._is_over = True
        self._log(f"job {self._job}: {end['result']} {end['reason']}".rstrip())

    def _declare(self, result: str, reason: str, record: dict[str, Any], rank: int | None) -> None:
        """End the attempt for all nodes, unless another node already has."""
        end = end_record(result, reason, instance_id=record["instance_id"], node=rank)
        self._s3.create(self._attempt_keys.end, json.dumps(end).encode())
        self._log(f"job {self._job}, attempt {self._attempt}: {result}: {reason}")
        self._read_end()

    def _read(self, url: str) -> dict[str, Any] | None:
        found = self._s3.get(url)
        return json_value(found[0]) if found else None

    def _log_once(self, text: str) -> None:
        if text != self._last_message:
            self._log(f"job {self._job}: {text}")
        self._last_message = text

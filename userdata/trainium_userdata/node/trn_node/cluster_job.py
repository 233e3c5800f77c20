"""The cluster's job: what this node does for it, and what it decides for all as the first of the roster."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Protocol

from . import files, job_cache, job_files
from .cluster import folder, unreachable
from .job_unit import JobUnit
from .notices import timestamp
from .objects import Objects

FORMATS = (1, 2)
"""2 has inputs, secrets or a place of its own for checkpoints, which earlier node programs do not know."""
CLOSE_SECONDS = 60
"""How long a job whose last attempt has ended waits for the first node to end it; then another one does."""

SHORTEST_SECONDS, LONGEST_SECONDS = 1, 5
"""Between polls: who submits a job waits for it."""
POLLS_PER_SECOND = 200
"""Of all nodes: S3 takes 5,500 reads per second, and when a job begins each node has a dozen of them."""
ENDING_SECONDS = 0.2
"""Between polls while systemd clears away what the job left on this node."""

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,127}")
"""Of a job: it becomes part of paths."""


JOB_KEY = "job.json"
"""Of the job that the nodes of the cluster are given."""


class Members(Protocol):
    """The nodes that a job runs on, as cluster.Cluster knows them."""

    read_at: float
    expects_roster: bool

    @property
    def nodes(self) -> dict[str, str]: ...

    @property
    def version(self) -> str: ...

    @property
    def is_sound(self) -> bool: ...


class ClusterJob:
    """`poll` does whatever is due. now: the time in seconds since 1970. key: where the job is found in S3."""

    def __init__(
        self, s3: Objects, log: Callable[[str], None], now: Callable[[], float], notice: str, key: str = JOB_KEY
    ) -> None:
        self._s3, self._log, self._now, self._notice, self._key = s3, log, now, notice, key
        self._unit = JobUnit()
        self._etag = ""
        self._is_first = self._active = False
        self._nodes = 0
        self._reset({})

    def _reset(self, spec: dict[str, Any]) -> None:
        self._spec = spec
        self._is_over = False
        self._attempt = 0
        self._start: dict[str, Any] = {}
        self._first_at = 0.0
        self._end: dict[str, Any] | None = None
        self._end_seen = 0.0
        self._last_message = ""

    @property
    def seconds(self) -> float:
        """Between polls. The first node, for which all others wait, polls often in a cluster of any size."""
        if self._active:
            return ENDING_SECONDS if self._unit.is_ending else LONGEST_SECONDS
        if not self._nodes:
            return LONGEST_SECONDS
        shared = SHORTEST_SECONDS if self._is_first else self._nodes / POLLS_PER_SECOND
        return min(max(shared, SHORTEST_SECONDS), LONGEST_SECONDS)

    def wait(self, seconds: float) -> bool:
        """Return after so many seconds, or when this node's part of the job ends; whether it did."""
        return self._unit.wait(seconds)

    def poll(self, record: dict[str, Any], cluster: Members) -> None:
        """record: this node's. Raises OSError or ValueError when S3 does not answer or holds nonsense."""
        self._nodes = len(cluster.nodes)
        self._is_first = next(iter(cluster.nodes), None) == record["instance_id"]
        self._read_spec()
        if not self._spec or self._is_over:
            self._active = False
            return
        self._active = self._unit.is_active()
        # While it runs here, the unit itself reads the end.
        if not self._active:
            self._follow()
            if self._attempt and not self._end:
                self._join(record)
            elif self._read("end.json") is not None:
                self._is_over = True
                self._log(f"job {self._job}: over")
                return
        # A node that was lost may be replaced by another one, which only a newer roster names.
        cluster.expects_roster = bool(self._end) and not self._is_over
        if self._is_first:
            self._lead(record, cluster)
        elif not self._active and self._end and self._now() - self._end_seen > CLOSE_SECONDS and not self._is_retried():
            self._close(self._end)

    @property
    def open_job(self) -> str:
        """The job that is not over; empty when there is none."""
        return self._job if self._spec and not self._is_over else ""

    @property
    def is_known(self) -> bool:
        """Whether a job was found."""
        return bool(self._spec)

    @property
    def is_over(self) -> bool:
        """Whether a job was found, and nothing is left to do for it here."""
        return self._is_over and not self._unit.is_active()

    @property
    def _job(self) -> str:
        return str(self._spec["id"])

    def _read_spec(self) -> None:
        found = self._s3.get(f"{folder()}/{self._key}", self._etag)
        if not found:
            return
        spec = json.loads(found[0])
        if spec["format"] not in FORMATS or not NAME.fullmatch(spec["id"]) or int(spec["nodes"]) < 1:
            raise ValueError(f"{self._key} is no job of format {' or '.join(map(str, FORMATS))}")
        self._etag = found[1]
        if spec["id"] != self._spec.get("id"):
            self._reset(spec)
            self._log(f"job {self._job}: found")

    def _follow(self) -> None:
        """Find the newest attempt, and how it ended. None follows one that has not."""
        while True:
            if self._attempt and not self._end:
                self._read_end()
                if not self._end:
                    return
            start = self._read(f"attempts/{self._attempt + 1}/start.json")
            if not start:
                return
            self._set_attempt(start)

    def _set_attempt(self, start: dict[str, Any]) -> None:
        self._attempt, self._start, self._end = self._attempt + 1, start, None
        self._first_at = self._first_at or timestamp(start["at"])

    def _read_end(self) -> None:
        self._end = self._read(f"attempts/{self._attempt}/end.json")
        self._end_seen = self._now()

    def _join(self, record: dict[str, Any]) -> None:
        """Start this node's part of the attempt, or write why it cannot, or that it is gone."""
        names = [node["instance_id"] for node in self._start.get("nodes", [])]
        if self._end or record["instance_id"] not in names:
            return
        rank = names.index(record["instance_id"])
        name = f"node {rank} ({record['instance_id']})"
        job, attempt, this_boot = self._unit.begun()
        if (job, attempt) == (self._job, self._attempt):
            why = "the job's processes were ended" if this_boot else "it was started anew"
            self._declare("node-lost", f"{name} is out of the job: {why}", record, rank)
        elif record["state"] != "proven":
            self._declare("failed", f"{name} is not proven: {record['state']} {record['reason']}".strip(), record, rank)
        else:
            self._log(f"job {self._job}: starts attempt {self._attempt} as node {rank}")
            try:
                self._unit.start(self._job, self._attempt, self._launch(rank))
                self._active = self._unit.is_active()
            except (OSError, ValueError, LookupError) as error:
                self._declare("failed", f"{name} cannot start the job: {error}", record, rank)

    def _launch(self, rank: int) -> dict[str, Any]:
        stack = self._spec.get("stack")
        environment = job_cache.framework_environment(stack) if stack else None
        return {
            "url": f"{folder()}/jobs",
            "spec": self._spec,
            "attempt": self._attempt,
            "rank": rank,
            "nodes": self._start["nodes"],
            "resume_from": self._start["resume_from"],
            "resume_job": self._start["resume_job"],
            "seconds_left": self._start["seconds_left"],
            "notice_file": str(files.path(self._notice)),
            "venv": str(environment[1]) if environment else None,
            "compile_cache": job_cache.compile_cache(stack) if self._has_cache else None,
        }

    @property
    def _has_cache(self) -> bool:
        """Whether the job wants one. Who submits jobs may have an earlier version, which says nothing of it."""
        return bool(self._spec.get("compile_cache", True))

    def _lead(self, record: dict[str, Any], cluster: Members) -> None:
        """What only the first node of the roster does: begin attempts, notice lost nodes, end the job."""
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
        if self._end and not self._is_retried():
            self._close(self._end)
            return
        stop = self._read("stop.json")
        if stop is not None:
            self._close(job_files.end_of_attempt("stopped", str(stop.get("reason") or ""), record["instance_id"], 0))
        elif self._seconds_left() == 0:
            limit = self._spec.get("time_limit_seconds")
            why = f"the job's time limit of {limit} seconds is over"
            self._close(job_files.end_of_attempt("time-limit", why, record["instance_id"], 0))
        elif record["state"] == "proven" and cluster.is_sound and not (self._end and cluster.read_at <= self._end_seen):
            self._begin(record, cluster)

    def _begin(self, record: dict[str, Any], cluster: Members) -> None:
        """Write the start of the next attempt, once all its nodes are there."""
        wanted = int(self._spec["nodes"])
        nodes = [{"instance_id": name, "address": address} for name, address in cluster.nodes.items()][:wanted]
        if len(nodes) < wanted:
            self._log_once(f"waits: {len(nodes)} of {wanted} nodes are in the roster")
            return
        silent = unreachable([node["address"] for node in nodes[1:]]) if self._attempt else set[str]()
        if silent:
            self._log_once(f"waits: {', '.join(sorted(silent))} does not answer")
            return
        earlier = self._spec.get("resume_from")
        checkpoint, job = self._newest_checkpoint(self._job) if self._attempt else None, self._job
        if earlier and not checkpoint:
            checkpoint, job = self._newest_checkpoint(earlier), earlier
            if not checkpoint:
                why = f"job {earlier} has no complete checkpoint to go on from"
                self._close(job_files.end_of_attempt("failed", why, nodes[0]["instance_id"], 0))
                return
        start = {
            "attempt": self._attempt + 1,
            "at": job_files.now(),
            "roster": cluster.version,
            "nodes": nodes,
            "resume_from": checkpoint,
            "resume_job": job if checkpoint else None,
            "seconds_left": self._seconds_left(),
        }
        url = f"{self._folder}/attempts/{self._attempt + 1}/start.json"
        if not self._s3.create(url, json.dumps(start).encode()):
            # By an earlier request without an answer, or an earlier first node.
            self._follow()
            return
        self._set_attempt(start)
        self._log(f"job {self._job}: attempt {self._attempt} on {wanted} nodes, from {checkpoint or 'the beginning'}")
        # Not at the next poll: who submits a job waits for it.
        self._join(record)

    def _newest_checkpoint(self, job: str) -> str | None:
        """A manifest is written last: what has one is complete."""
        if not NAME.fullmatch(job):
            raise ValueError(f"{job!r} is no job")
        kept = str(self._spec.get("checkpoints") or f"{folder()}/jobs").rstrip("/")
        found = self._s3.list(f"{kept}/{job}/checkpoints/")
        manifests = [each for each in found if each.key.endswith(".json")]
        if not manifests:
            return None
        newest = max(manifests, key=lambda each: (each.modified, _natural(each.key)))
        return newest.key.rpartition("/")[2][: -len(".json")]

    def _seconds_left(self) -> float | None:
        limit = self._spec.get("time_limit_seconds")
        if limit is None or not self._first_at:
            return limit
        return max(0, self._first_at + limit - self._now())

    def _is_retried(self) -> bool:
        """Whether another attempt follows the one that has ended."""
        spec, end = self._spec, self._end or {}
        if self._attempt > int(spec.get("retries") or 0):
            return False
        return (
            end["result"] == "node-lost"
            or (end["result"] == "hung" and bool(spec.get("retry_on_hang")))
            or (
                end["result"] == "failed"
                and _as_shells_say(end["exit_code"]) in (spec.get("retry_on_exit_codes") or [])
            )
        )

    def _close(self, end: dict[str, Any]) -> None:
        self._s3.create(f"{self._folder}/end.json", json.dumps({**end, "attempts": self._attempt}).encode())
        self._is_over = True
        self._log(f"job {self._job}: {end['result']} {end['reason']}".rstrip())

    def _declare(self, result: str, reason: str, record: dict[str, Any], rank: int | None) -> None:
        """End the attempt for all nodes, unless one has before."""
        end = job_files.end_of_attempt(result, reason, record["instance_id"], rank)
        self._s3.create(f"{self._folder}/attempts/{self._attempt}/end.json", json.dumps(end).encode())
        self._log(f"job {self._job}, attempt {self._attempt}: {result}: {reason}")
        self._read_end()

    @property
    def _folder(self) -> str:
        return f"{folder()}/jobs/{self._job}"

    def _read(self, name: str) -> dict[str, Any] | None:
        found = self._s3.get(f"{self._folder}/{name}")
        return json.loads(found[0]) if found else None

    def _log_once(self, text: str) -> None:
        if text != self._last_message:
            self._log(f"job {self._job}: {text}")
        self._last_message = text


def _as_shells_say(exit_code: int | None) -> int | None:
    """That of a process that a signal ended is negative here, and 128 and the signal's number in shells."""
    return 128 - exit_code if exit_code is not None and exit_code < 0 else exit_code


def _natural(text: str) -> list[tuple[int, str]]:
    """Numbers in it count as numbers: step-1000 comes after step-200."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", text)]

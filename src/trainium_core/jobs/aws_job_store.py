"""The jobs of a cluster in S3, where the command line writes requests and the nodes write results."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from trainium_core.jobs.aws_job_bucket import JobBucket
from trainium_core.jobs.aws_job_files import (
    CHECKPOINTS,
    checkpoint_files,
    incomplete_checkpoint_files,
    output_links,
)
from trainium_core.jobs.aws_transfers import download_object
from trainium_core.jobs.copying import paths_through_links
from trainium_core.jobs.follow import ChunkedLog, LogChunk
from trainium_core.jobs.progress import JobState
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import Clients
from trainium_runtime.errors import RequestRefusedError, UnavailableError
from trainium_runtime.node_store import NodeStore
from trainium_wire.formats import moment, time_text
from trainium_wire.job import (
    FAILED,
    Job,
    checkpoint_names,
    end_record,
    is_job_id,
    job_end_record,
    jobs_url,
    resumable_checkpoints,
    saved_otherwise,
)
from trainium_wire.job_keys import INCOMPLETE_CHECKPOINTS, INPUTS, OUTPUTS, SUBMITTED_PREFIX, job_keys
from trainium_wire.job_progress import Attempt, NodeProgress, attempt_state, node_progress, outcome
from trainium_wire.keys import CURRENT_JOB_KEY, RECORDS_PREFIX
from trainium_wire.node_record import StoredRecord

_READERS = 16
_MOST_ATTEMPTS = 200
"""The number is limited because the job itself can write attempts."""
_SEARCHED = 20
_LARGEST_LOG_PART = 4_194_304


class UnreadableJobError(UnavailableError):
    """The record of a submitted job is invalid, or of another version of the package."""


@dataclass(frozen=True, kw_only=True)
class CurrentJob:
    """The job that the nodes run, or ran last.

    Attributes:
        job: The job.
        etag: S3's ETag of the object with the job.
    """

    job: Job
    etag: str


class JobStore:
    """The jobs in the bucket of a cluster's node records, which is found when it is first needed.

    Reads raise UnavailableError, writes RequestRefusedError, and both the errors of `bucket`.

    Args:
        region: The region of the bucket.
        bucket: The name of the bucket, or a function that finds it.
        clients: The clients of boto3. Default: new ones.
    """

    def __init__(self, region: str, bucket: str | Callable[[], str], *, clients: Clients | None = None) -> None:
        find = (lambda: bucket) if isinstance(bucket, str) else bucket
        self._objects = JobBucket(region, find, clients=clients)
        # Caches of objects that no longer change, and the buckets and keys of checkpoint files, by path.
        self._submitted: dict[str, Job] = {}
        self._starts: dict[tuple[str, int], Mapping[str, Any]] = {}
        self._ended: dict[tuple[str, int], Attempt] = {}
        self._saved: dict[tuple[str, str], tuple[str, str]] = {}

    @property
    def bucket(self) -> str:
        """The name of the bucket."""
        return self._objects.name

    def current(self) -> CurrentJob | None:
        """The current job; None if there has been no job.

        Raises:
            UnavailableError: A request failed or was denied, or the object is not a valid job.
        """
        stored = self._objects.get(CURRENT_JOB_KEY)
        if stored is None:
            return None
        try:
            return CurrentJob(job=Job.from_json(stored[0]), etag=stored[1])
        except ValueError as error:
            raise UnavailableError(f"s3://{self.bucket}/{CURRENT_JOB_KEY} is {error}") from error

    def last(self) -> JobState | None:
        """The state of the current job."""
        current = self.current()
        if current is None:
            return None
        self._submitted.setdefault(current.job.id, current.job)
        return self.state(current.job.id)

    def submit(
        self, job: Job, archive: bytes, *, over: CurrentJob | None, uploads: Mapping[str, Path] | None = None
    ) -> bool:
        """Submit a job.

        Args:
            job: The job.
            archive: Its packed source.
            over: The current job, which it replaces; None if there is none.
            uploads: Local inputs, files and directories by name.

        Returns:
            False if another job was submitted since `over` was read. The job does not start; its files stay in S3.

        Raises:
            JobError: A file cannot be read.
            RequestRefusedError: S3 refused a write, or the ID exists.
        """
        self._store(job, archive, uploads or {})
        unchanged = {"IfMatch": over.etag} if over else {"IfNoneMatch": "*"}
        if not self._objects.put(CURRENT_JOB_KEY, job.to_json().encode(), **unchanged):
            return False
        # Written last, so that a job that was not submitted has no state. Until then, `job` reads the current job.
        with suppress(RequestRefusedError):
            self._add_record(job)
        return True

    def add(self, job: Job, archive: bytes, uploads: Mapping[str, Path]) -> None:
        """Store a job that a scheduler starts. Arguments and errors are as for `submit`."""
        self._store(job, archive, uploads)
        self._add_record(job)

    def _add_record(self, job: Job) -> None:
        self._objects.put(job_keys(job.id).job, job.to_json().encode())
        self._objects.put(job_keys(job.id).submitted, b"")

    def _store(self, job: Job, archive: bytes, uploads: Mapping[str, Path]) -> None:
        if not self._objects.put(job_keys(job.id).source, archive, "application/gzip", IfNoneMatch="*"):
            raise RequestRefusedError(f"the job {job.id} already exists: try again, or specify another name")
        for name, path in uploads.items():
            self._objects.upload(f"{job_keys(job.id).inputs}/{name}", path)

    def stop(self, job_id: str) -> None:
        """Ask the nodes to end a job."""
        request = {"reason": "trn stop", "at": time_text(datetime.now(UTC))}
        self._objects.put(job_keys(job_id).stop, json.dumps(request).encode())

    def close(self, job_id: str, reason: str, result: str = FAILED) -> None:
        """Record the end of a job that no longer runs on any node. Does nothing if the job has ended."""
        end = job_end_record(end_record(result, reason), attempts=0)
        self._objects.put(job_keys(job_id).end, json.dumps(end).encode(), IfNoneMatch="*")

    def job_ids(self) -> Sequence[str]:
        """The IDs of all submitted jobs. Folders of jobs are not listed, because nodes can write any number of them."""
        return [name for key in self._objects.keys(f"{SUBMITTED_PREFIX}/") if is_job_id(name := key.rpartition("/")[2])]

    def job(self, job_id: str) -> Job | None:
        """The job as submitted; None if it does not exist. Raises UnreadableJobError if its record is invalid."""
        if job_id not in self._submitted:
            stored = self._objects.get(job_keys(job_id).job)
            if stored is None:
                current = self.current()
                return current.job if current and current.job.id == job_id else None
            try:
                self._submitted[job_id] = Job.from_json(stored[0])
            except ValueError as error:
                raise UnreadableJobError(f"s3://{self.bucket}/{job_keys(job_id).job} is {error}") from error
        return self._submitted[job_id]

    def state(self, job_id: str, *, every_node: bool = False) -> JobState | None:
        """The state of a job, as trainium_core.jobs.follow.FollowedJobs describes."""
        job = self.job(job_id)
        return None if job is None else self._state(job, self._end(job_id), every_node=every_node)

    def _state(self, job: Job, end: Mapping[str, Any] | None, *, every_node: bool = False) -> JobState:
        attempts = tuple(self._attempts(job, end, every_node=every_node))
        return JobState(
            job=job,
            attempts=attempts,
            outcome=outcome(end, attempts[-1].nodes if attempts else ()),
            stopping=end is None and self._objects.json(job_keys(job.id).stop) is not None,
        )

    def _brief_state(self, job_id: str) -> JobState | None:
        """The state of a job; if it has ended after a known number of attempts, with the end of the last one only."""
        job = self.job(job_id)
        if job is None:
            return None
        end = self._end(job_id)
        count = _attempt_count(end)
        if end is None or count is None:
            return self._state(job, end)
        node = self._node(0, job_keys(job_id).attempt(count).node(0))
        last = attempt_state(count, {}, end, nodes=[] if node is None else [node], reporting=0)
        return JobState(job=job, attempts=(last,), outcome=last.outcome)

    def _end(self, job_id: str) -> Mapping[str, Any] | None:
        return self._objects.json(job_keys(job_id).end)

    def has_ended(self, job_id: str) -> bool:
        """Whether a job has ended. Needs fewer requests than its state."""
        return self._end(job_id) is not None

    def newest(self, most: int, *, brief: bool = False) -> list[JobState]:
        """The most recent jobs, newest first. Jobs with an unreadable record are ignored.

        Args:
            most: Maximum number of jobs.
            brief: Read only the last attempt of jobs that have ended, without its start.
        """

        def state(job_id: str) -> JobState | None:
            try:
                return self._brief_state(job_id) if brief else self.state(job_id)
            except UnreadableJobError:
                return None

        states: list[JobState] = []
        waiting = sorted(self.job_ids(), key=_submission_time, reverse=True)
        with ThreadPoolExecutor(_READERS) as readers:
            while waiting and len(states) < most:
                batch, waiting = waiting[: most - len(states)], waiting[most - len(states) :]
                states += [found for found in readers.map(state, batch) if found is not None]
        return states

    def newest_with_checkpoints(self, folder_url: str | None = None) -> Sequence[str]:
        """Those of the last _SEARCHED jobs that have complete checkpoints, newest first.

        Args:
            folder_url: As for `checkpoints`.
        """
        newest = sorted(self.job_ids(), key=_submission_time, reverse=True)[:_SEARCHED]
        return [job_id for job_id in newest if resumable_checkpoints(self.checkpoints(job_id, folder_url))]

    def open_log(
        self, job_id: str, *, rank: int | None = None, node: int | None = None, attempt: int | None = None
    ) -> ChunkedLog:
        return ChunkedLog(job_id, self, rank=rank, node=node, attempt=attempt)

    def log(self, job_id: str, attempt: int, node: int, *, after: str = "") -> Iterator[LogChunk]:
        """The log chunks of a node in an attempt that follow the chunk with the key `after`. Default: all."""
        prefix = job_keys(job_id).attempt(attempt).logs(node)
        for key in self._objects.keys(prefix, after=after):
            stored = self._objects.get(key, most=_LARGEST_LOG_PART)
            if stored is not None:
                yield LogChunk(key=key, node=node, text=stored[0].decode(errors="replace"))

    def checkpoints(self, job_id: str, folder_url: str | None = None) -> Sequence[str]:
        """The names of the complete checkpoints, newest last.

        Args:
            job_id: The job that saved them.
            folder_url: S3 URL of the folder with the checkpoints of all jobs. Default: the folder in this bucket.
        """
        bucket, prefix = self._checkpoint_place(job_id, folder_url)
        written = {entry["Key"]: entry["LastModified"] for entry in self._objects.entries(prefix, bucket=bucket)}
        return checkpoint_names({key: time for key, time in written.items() if "/" not in key.removeprefix(prefix)})

    def resumable(self, job_id: str, folder_url: str | None = None) -> tuple[str, Sequence[str]]:
        """Find the checkpoints for a job that resumes this one.

        Args:
            job_id: The job to resume. If it saved no checkpoint, the job that it resumed is searched, and so on.
            folder_url: As for `checkpoints`.

        Returns:
            The job that saved the checkpoints, and their names, newest last. If there are none: `job_id` and no names.
        """
        current, seen = job_id, {job_id}
        while not (names := resumable_checkpoints(self.checkpoints(current, folder_url))):
            job = self.job(current)
            if job is None or job.resume_from is None or job.resume_from in seen:
                return job_id, ()
            current = job.resume_from
            seen.add(current)
        return current, names

    def checkpoint_difference(self, owner: str, checkpoint: str, job: Job) -> str:
        """How the number of processes or nodes of a checkpoint differs from the job's; empty if equal or unknown."""
        bucket, prefix = self._checkpoint_place(owner, job.checkpoints)
        return saved_otherwise(self._objects.json(f"{prefix}{checkpoint}.json", bucket=bucket) or {}, job)

    def _checkpoint_place(self, job_id: str, folder_url: str | None) -> tuple[str, str]:
        place = urlsplit(folder_url or jobs_url(self.bucket))
        return place.netloc, job_keys(job_id, place.path.strip("/")).checkpoints

    def files(self, job_id: str, folder: str) -> Mapping[str, int]:
        """Sizes in bytes of the files below a folder of a job, by path in the job's folder. `folder` may be a file.

        Below `checkpoints`, files have the script's paths, and incomplete checkpoints are omitted. These are below
        `incomplete-checkpoints`. Files that symbolic links of the script lead to are listed under each of their paths.
        """
        wanted = folder.strip("/")
        top, _, rest = wanted.partition("/")
        prefix, uploads = f"{job_keys(job_id).folder}/", f"{job_keys(job_id).inputs}/"
        found: dict[str, int] = {}
        if top in (CHECKPOINTS, INCOMPLETE_CHECKPOINTS):
            job = self.job(job_id)
            folder_url = job.checkpoints if job else None
            bucket, saved = self._checkpoint_place(job_id, folder_url)
            if top == CHECKPOINTS:
                files = checkpoint_files(self._objects, bucket, saved, self.checkpoints(job_id, folder_url))
            else:
                files = incomplete_checkpoint_files(self._objects, job_id, bucket, saved)
            self._saved |= {(job_id, path): (bucket, key) for path, (key, _) in files.items()}
            found |= {path: size for path, (_, size) in files.items()}
        elif top != INPUTS:
            links = output_links(self._objects, job_id) if top in ("", OUTPUTS) else dict[str, str]()
            listed = self._objects.entries(f"{prefix}{top if links else wanted}")
            found |= {entry["Key"].removeprefix(prefix): entry["Size"] for entry in listed}
            for path, file in paths_through_links(found, links).items():
                found[path] = found[file]
                self._saved[job_id, path] = (self.bucket, f"{prefix}{file}")
        if top in ("", INPUTS):
            entries = self._objects.entries(f"{uploads}{rest}")
            found |= {f"{INPUTS}/{entry['Key'].removeprefix(uploads)}": entry["Size"] for entry in entries}
        return {name: size for name, size in found.items() if not wanted or f"{name}/".startswith(f"{wanted}/")}

    def node_records(self) -> Mapping[str, StoredRecord]:
        """The records of the nodes by instance ID."""
        with read_errors(f"s3:ListBucket or s3:GetObject on the bucket {self.bucket}"):
            return NodeStore(self._objects.client("s3"), self.bucket, RECORDS_PREFIX).records()

    def download(self, job_id: str, name: str, path: str) -> None:
        """Download a file of a job, by its path in `files`. For files of checkpoints, call `files` first."""
        top, _, rest = name.partition("/")
        usual = f"{job_keys(job_id).inputs}/{rest}" if top == INPUTS else f"{job_keys(job_id).folder}/{name}"
        bucket, key = self._saved.get((job_id, name), (self.bucket, usual))
        download_object(self._objects.client("s3"), bucket, key, path)

    def _attempts(self, job: Job, end: Mapping[str, Any] | None, *, every_node: bool) -> Iterator[Attempt]:
        job_id, ended_attempts = job.id, _attempt_count(end)
        for number in range(1, _MOST_ATTEMPTS + 1):
            attempt = self._ended.get((job_id, number)) or self._attempt(job, number, every_node=every_node)
            if attempt is None:
                return
            if attempt.outcome is not None and every_node and all(node.has_ended for node in attempt.nodes):
                self._ended[job_id, number] = attempt
            yield attempt
            if attempt.outcome is None or number == ended_attempts:
                return

    def _attempt(self, job: Job, number: int, *, every_node: bool) -> Attempt | None:
        keys = job_keys(job.id).attempt(number)
        start = self._starts.get((job.id, number)) or self._objects.json(keys.start)
        if start is None:
            return None
        self._starts[job.id, number] = start
        reporting = {
            int(match[1]): key for key in self._objects.keys(keys.nodes) if (match := re.search(r"/(\d+)\.json$", key))
        }
        wanted = sorted(rank for rank in reporting if rank < (job.nodes if every_node else 1))
        with ThreadPoolExecutor(_READERS) as readers:
            read = list(readers.map(self._node, wanted, [reporting[node] for node in wanted]))
        return attempt_state(
            number,
            start,
            self._objects.json(keys.end),
            nodes=[node for node in read if node is not None],
            reporting=len(reporting),
            checkpoint_at=self._saved_at(start, job.checkpoints) if every_node else None,
        )

    def _saved_at(self, start: Mapping[str, Any], folder_url: str | None) -> datetime | None:
        """When the checkpoint that an attempt continues from was saved."""
        name, owner = start.get("resume_from"), start.get("resume_job")
        if not isinstance(name, str) or not isinstance(owner, str):
            return None
        bucket, prefix = self._checkpoint_place(owner, folder_url)
        return moment((self._objects.json(f"{prefix}{name}.json", bucket=bucket) or {}).get("at"))

    def _node(self, node: int, key: str) -> NodeProgress | None:
        return None if (raw := self._objects.json(key)) is None else node_progress(node, raw)


def _submission_time(job_id: str) -> str:
    """The time at the end of a job's ID."""
    return job_id[-len("20261122-120000") :]


def _attempt_count(end: Mapping[str, Any] | None) -> int | None:
    """The number of attempts in the record of a job's end; None if it is not known."""
    count = (end or {}).get("attempts")
    return count if isinstance(count, int) and count > 0 else None

"""Requests about a cluster's training jobs to AWS Batch, SageMaker, CloudWatch and S3."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, TypeGuard
from urllib.parse import urlsplit

from trainium_core.engines.sagemaker.aws_service_jobs import ServiceJobs, training_job_name
from trainium_core.engines.sagemaker.jobs.job import training_job_name as submitted_name
from trainium_core.engines.sagemaker.jobs.request import JOB_ID
from trainium_core.engines.sagemaker.jobs.states import job_entry
from trainium_core.facts import training_facts
from trainium_core.jobs.aws_job_bucket import JobBucket
from trainium_core.jobs.aws_transfers import download_object
from trainium_core.jobs.follow import LogLine
from trainium_core.jobs.progress import JobState
from trainium_core.naming import BATCH_NAME_PREFIX, job_id_prefix, training_job_prefix
from trainium_runtime.aws_errors import read_errors, write_errors
from trainium_runtime.aws_service import AwsService, Clients, is_aws
from trainium_runtime.errors import ABSENT_OBJECT, RequestRefusedError, UnavailableError
from trainium_wire.job_keys import job_keys
from trainium_wire.node_record import StoredRecord

_READERS = 8
_LARGEST_PAGE = 100  # The maximum of ListTrainingJobs.
_PAGES_AT_ONCE = 20  # Of one log stream, so that much output does not delay the check of the status.
_NO_JOB = ("not found", "not find", "ResourceNotFound")


class TrainingJobs(AwsService):
    """The training jobs of a cluster. Reads raise UnavailableError, writes RequestRefusedError."""

    def __init__(self, region: str, cluster: str, *, clients: Clients) -> None:
        super().__init__(region, clients=clients)
        self.service_jobs = ServiceJobs(self)
        self._ids, self._prefix = job_id_prefix(cluster), training_job_prefix(cluster)
        self._batch_ids: dict[str, str] = {}
        self._listed: dict[str, Mapping[str, tuple[str, str, int]]] = {}

    def job_ids(self) -> Sequence[str]:
        return [job["jobName"] for job in self.service_jobs.named(f"{self._ids}*")]

    def newest(self, most: int) -> Sequence[Mapping[str, Any]]:
        """Descriptions of the newest jobs. SageMaker keeps training jobs longer than AWS Batch keeps service jobs."""
        jobs = [*self.service_jobs.named(f"{self._ids}*")]
        with ThreadPoolExecutor(_READERS) as readers:
            found = [*readers.map(self._described, (job["jobId"] for job in jobs[:most]))]
            if len(jobs) < most:
                known = {training_job_name(job) for job in jobs}
                older = [name for name in self._names(self._prefix, most + len(known)) if name not in known]
                found += readers.map(self._training_job, older[: most - len(jobs)])
        by_id = {entry["Environment"][JOB_ID]: entry for entry in reversed(found) if _has_id(entry)}
        return [*reversed(by_id.values())]

    def described(self, job_id: str) -> Mapping[str, Any] | None:
        """The description of a job in the form of DescribeTrainingJob."""
        batch_id = self.batch_id(job_id)
        entry = None if batch_id is None else self._described(batch_id)
        if entry is not None:
            return entry
        names = self._names(BATCH_NAME_PREFIX + submitted_name(job_id), _LARGEST_PAGE)
        entries = (self._training_job(name) for name in names)
        return next((entry for entry in entries if _has_id(entry) and entry["Environment"][JOB_ID] == job_id), None)

    def batch_id(self, job_id: str) -> str | None:
        """The ID of a job in AWS Batch; None if AWS Batch does not have the job."""
        if job_id not in self._batch_ids:
            found = next(self.service_jobs.named(job_id), None)
            if found is None:
                return None
            self._batch_ids[job_id] = found["jobId"]
        return self._batch_ids[job_id]

    def _described(self, batch_id: str) -> Mapping[str, Any] | None:
        service = self.service_jobs.described(batch_id)
        if service is None:
            return None
        name = training_job_name(service)
        return job_entry(service, None if name is None else self._training_job(name))

    def _names(self, prefix: str, most: int) -> Sequence[str]:
        """Names of training jobs with a prefix, newest first. NameContains also finds the prefix within other names."""
        arguments = {"SortBy": "CreationTime", "SortOrder": "Descending", "NameContains": prefix}
        paging = {"PageSize": min(most, _LARGEST_PAGE)}
        with read_errors("sagemaker:ListTrainingJobs"):
            pages = self.client("sagemaker").get_paginator("list_training_jobs")
            names = (
                entry["TrainingJobName"]
                for page in pages.paginate(**arguments, PaginationConfig=paging)
                for entry in page["TrainingJobSummaries"]
            )
            return [*islice((name for name in names if name.startswith(prefix)), most)]

    def _training_job(self, name: str) -> Mapping[str, Any] | None:
        with read_errors("sagemaker:DescribeTrainingJob", absent=_NO_JOB):
            return self.client("sagemaker").describe_training_job(TrainingJobName=name)
        return None

    @property
    def runs_code(self) -> bool:
        """Whether training jobs run: only AWS runs them."""
        return is_aws(self.client("sagemaker").meta.endpoint_url)

    def stop(self, job_id: str) -> None:
        batch_id = self.batch_id(job_id)
        if batch_id is None:
            raise RequestRefusedError(f"AWS Batch does not have {job_id}")
        self.service_jobs.terminate(batch_id, "trn stop")

    def open_log(self) -> "TrainingLog":
        return TrainingLog(self)

    def files(self, job_id: str, folder: str) -> Mapping[str, int]:
        self._listed[job_id] = {path: (bucket, key, size) for path, bucket, key, size in self._objects(job_id)}
        sizes = {path: size for path, (_, _, size) in self._listed[job_id].items()}
        wanted = folder.strip("/")
        return {path: size for path, size in sizes.items() if not wanted or f"{path}/".startswith(f"{wanted}/")}

    def download(self, job_id: str, name: str, path: str) -> None:
        bucket, key, _ = self._listed[job_id][name]
        download_object(self.client("s3"), bucket, key, path)

    def _objects(self, job_id: str) -> Iterator[tuple[str, str, str, int]]:
        """Path (such as outputs/model.tar.gz), bucket, key and size of each checkpoint and output file of a job."""
        described = self.described(job_id) or {}
        folders: dict[str, str | None] = {"checkpoints": described.get("CheckpointConfig", {}).get("S3Uri")}
        output, name = described.get("OutputDataConfig", {}).get("S3OutputPath"), described.get("TrainingJobName")
        folders["outputs"] = f"{output.rstrip('/')}/{name}/output" if output and name else None
        for name, url in folders.items():
            if url is None:
                continue
            place = urlsplit(url)
            prefix = f"{place.path.strip('/')}/"
            with read_errors(f"s3:ListBucket on the bucket {place.netloc}"):
                pages = self.client("s3").get_paginator("list_objects_v2")
                for page in pages.paginate(Bucket=place.netloc, Prefix=prefix):
                    for entry in page.get("Contents", []):
                        path = f"{name}/{entry['Key'].removeprefix(prefix)}"
                        yield path, place.netloc, entry["Key"], entry["Size"]

    def node_records(self) -> Mapping[str, StoredRecord]:
        return {}

    def claim(self, bucket: str, job_id: str) -> bool:
        """Reserve the ID of a job, which AWS Batch accepts twice. Returns False if another job has it.

        Raises:
            RequestRefusedError: S3 refused the request.
        """
        objects = JobBucket(self.region, lambda: bucket, clients=self._clients)
        return objects.put(job_keys(job_id).submitted, b"", IfNoneMatch="*")

    def put(self, folder_url: str, files: Mapping[str, bytes]) -> None:
        """Upload files below an S3 URL, except files that exist with the same size.

        Raises:
            RequestRefusedError: S3 refused an upload.
        """
        place = urlsplit(folder_url)
        for name, content in files.items():
            key = f"{place.path.strip('/')}/{name}".lstrip("/")
            if not self._is_there(place.netloc, key, len(content)):
                with write_errors(f"s3:PutObject on the bucket {place.netloc}"):
                    self.client("s3").put_object(Bucket=place.netloc, Key=key, Body=content)

    def _is_there(self, bucket: str, key: str, size: int) -> bool:
        # Without s3:ListBucket, S3 returns 403 for a missing object. The error of the upload is clearer.
        with write_errors("s3:GetObject", absent=(*ABSENT_OBJECT, "403")):
            return self.client("s3").head_object(Bucket=bucket, Key=key)["ContentLength"] == size
        return False

    def log_streams(self, training_job: str) -> Sequence[str]:
        """The names of the log streams, `<job>/<node>-<time>`; empty before the first job creates the log group.

        Raises:
            UnavailableError: A request failed or was denied.
        """
        with read_errors("logs:DescribeLogStreams", absent=("ResourceNotFoundException",)):
            pages = self.client("logs").get_paginator("describe_log_streams")
            return [
                stream["logStreamName"]
                for page in pages.paginate(logGroupName=_group(), logStreamNamePrefix=f"{training_job}/")
                for stream in page["logStreams"]
            ]
        return []

    def log_events(self, stream: str, token: str | None) -> tuple[list[Mapping[str, Any]], str]:
        """A limited number of events after a token, and the next token, which is the same at the end of the stream.

        Raises:
            UnavailableError: A request failed or was denied.
        """
        events: list[Mapping[str, Any]] = []
        for _ in range(_PAGES_AT_ONCE):
            arguments: dict[str, Any] = {"logGroupName": _group(), "logStreamName": stream, "startFromHead": True}
            before = token
            with read_errors("logs:GetLogEvents"):
                page = self.client("logs").get_log_events(**arguments, **({"nextToken": token} if token else {}))
                events += page["events"]
                token = page["nextForwardToken"]
            if token == before:
                break
        return events, token or ""


class TrainingLog:
    """The output of a training job's nodes. Implements trainium_core.jobs.follow.JobLog."""

    def __init__(self, jobs: TrainingJobs) -> None:
        self._jobs = jobs
        self._tokens: dict[str, str] = {}

    def new_lines(self, state: JobState) -> Iterator[LogLine]:
        """New lines: all of them if the job has ended; otherwise a limited number. Each batch is ordered by time.

        Raises:
            UnavailableError: The log streams cannot be listed, or one cannot be read. Lines of the others come first.
        """
        training_job = state.places.get("training job")
        if training_job is None:
            return
        while True:
            before, unread = dict(self._tokens), None
            events: list[tuple[int, str, str]] = []
            for stream in self._jobs.log_streams(training_job):
                try:
                    new, self._tokens[stream] = self._jobs.log_events(stream, self._tokens.get(stream))
                except UnavailableError as error:
                    unread = error
                    continue
                node = stream.partition("/")[2].rpartition("-")[0]
                events += [(event["timestamp"], node, event["message"]) for event in new]
            for _, node, text in sorted(events, key=lambda event: event[0]):
                yield LogLine(attempt=1, rank=None, text=text, node=node if state.job.nodes > 1 else None)
            if unread is not None:
                raise unread
            if not state.is_over or before == self._tokens:
                return

    def last_line(self) -> Iterator[LogLine]:
        return iter(())


def _has_id(entry: Mapping[str, Any] | None) -> TypeGuard[Mapping[str, Any]]:
    """Whether a training job exists, and `trn run` submitted it."""
    return entry is not None and JOB_ID in entry.get("Environment", {})


def _group() -> str:
    return training_facts()["container"]["log_group"]

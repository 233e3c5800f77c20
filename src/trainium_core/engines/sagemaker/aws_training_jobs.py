"""Requests about a cluster's training jobs to SageMaker, CloudWatch and S3."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, cast
from urllib.parse import urlsplit

from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError
from botocore.parsers import ResponseParserError

from trainium_core.facts import training_facts
from trainium_core.jobs.aws_transfers import download_object
from trainium_core.jobs.engine import StartUnknownError
from trainium_core.jobs.follow import LogLine
from trainium_core.jobs.progress import JobState
from trainium_runtime.aws_errors import error_code, read_errors, write_errors
from trainium_runtime.aws_service import AwsService, Clients, is_aws
from trainium_runtime.errors import ABSENT_OBJECT, RequestRefusedError, UnavailableError
from trainium_wire.node_record import StoredRecord

_LARGEST_PAGE = 100  # The maximum of ListTrainingJobs.
_PAGES_AT_ONCE = 20  # Of one log stream, so that much output does not delay the check of the status.
_NO_JOB = ("not found", "not find", "ResourceNotFound")


class TrainingJobs(AwsService):
    """The training jobs whose names begin with a prefix. Reads raise UnavailableError, writes RequestRefusedError."""

    def __init__(self, region: str, prefix: str, *, clients: Clients) -> None:
        super().__init__(region, clients=clients)
        self._prefix = prefix

    def job_ids(self) -> Sequence[str]:
        return self.newest_ids(_LARGEST_PAGE)

    def newest_ids(self, most: int) -> list[str]:
        arguments = {"SortBy": "CreationTime", "SortOrder": "Descending", "NameContains": self._prefix}
        paging = {"PageSize": min(most, _LARGEST_PAGE)}
        with read_errors("sagemaker:ListTrainingJobs"):
            pages = self.client("sagemaker").get_paginator("list_training_jobs")
            names = (
                entry["TrainingJobName"]
                for page in pages.paginate(**arguments, PaginationConfig=paging)
                for entry in page["TrainingJobSummaries"]
            )
            return [*islice((name for name in names if name.startswith(self._prefix)), most)]

    def described(self, job_id: str) -> Mapping[str, Any] | None:
        with read_errors("sagemaker:DescribeTrainingJob", absent=_NO_JOB):
            return self.client("sagemaker").describe_training_job(TrainingJobName=job_id)
        return None

    @property
    def runs_code(self) -> bool:
        """Whether training jobs run: only AWS runs them."""
        return is_aws(self.client("sagemaker").meta.endpoint_url)

    def stop(self, job_id: str) -> None:
        with write_errors("sagemaker:StopTrainingJob"):
            self.client("sagemaker").stop_training_job(TrainingJobName=job_id)

    def open_log(self, job_id: str) -> "TrainingLog":
        return TrainingLog(job_id, self)

    def files(self, job_id: str, folder: str) -> Mapping[str, int]:
        sizes = {path: size for _, _, path, size in self._objects(job_id)}
        wanted = folder.strip("/")
        return {path: size for path, size in sizes.items() if not wanted or f"{path}/".startswith(f"{wanted}/")}

    def download(self, job_id: str, name: str, path: str) -> None:
        bucket, key = next(
            (bucket, key) for bucket, key, path_of_job, _ in self._objects(job_id) if path_of_job == name
        )
        download_object(self.client("s3"), bucket, key, path)

    def _objects(self, job_id: str) -> Iterator[tuple[str, str, str, int]]:
        """Bucket, key, path (such as outputs/model.tar.gz) and size of each checkpoint and output file of a job."""
        described = self.described(job_id) or {}
        folders: dict[str, str | None] = {"checkpoints": described.get("CheckpointConfig", {}).get("S3Uri")}
        output = described.get("OutputDataConfig", {}).get("S3OutputPath")
        folders["outputs"] = f"{output.rstrip('/')}/{job_id}/output" if output else None
        for name, url in folders.items():
            if url is None:
                continue
            place = urlsplit(url)
            prefix = f"{place.path.strip('/')}/"
            with read_errors(f"s3:ListBucket on the bucket {place.netloc}"):
                pages = self.client("s3").get_paginator("list_objects_v2")
                for page in pages.paginate(Bucket=place.netloc, Prefix=prefix):
                    for entry in page.get("Contents", []):
                        yield place.netloc, entry["Key"], f"{name}/{entry['Key'].removeprefix(prefix)}", entry["Size"]

    def node_records(self) -> Mapping[str, StoredRecord]:
        return {}

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

    def create(self, request: Mapping[str, Any]) -> None:
        """Create the job.

        Raises:
            RequestRefusedError: AWS refused the request.
            StartUnknownError: AWS did not confirm the start.
        """
        # Job names are unique, so a request that boto3 retries cannot start a second job.
        try:
            with write_errors("sagemaker:CreateTrainingJob"):
                self.client("sagemaker").create_training_job(**request)
        except RequestRefusedError as error:
            if _may_have_started(error.__cause__):
                raise StartUnknownError(str(error)) from error
            raise

    def log_streams(self, job_id: str) -> Sequence[str]:
        """The names of the log streams, `<job>/<node>-<time>`; empty before the first job creates the log group.

        Raises:
            UnavailableError: A request failed or was denied.
        """
        with read_errors("logs:DescribeLogStreams", absent=("ResourceNotFoundException",)):
            pages = self.client("logs").get_paginator("describe_log_streams")
            return [
                stream["logStreamName"]
                for page in pages.paginate(logGroupName=_group(), logStreamNamePrefix=f"{job_id}/")
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

    def __init__(self, job_id: str, jobs: TrainingJobs) -> None:
        self._job_id, self._jobs = job_id, jobs
        self._tokens: dict[str, str] = {}

    def new_lines(self, state: JobState) -> Iterator[LogLine]:
        """New lines: all of them if the job has ended; otherwise a limited number. Each batch is ordered by time.

        Raises:
            UnavailableError: The log streams cannot be listed, or one cannot be read. Lines of the others come first.
        """
        while True:
            before, unread = dict(self._tokens), None
            events: list[tuple[int, str, str]] = []
            for stream in self._jobs.log_streams(self._job_id):
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


def _group() -> str:
    return training_facts()["container"]["log_group"]


def _may_have_started(cause: BaseException | None) -> bool:
    """Whether the job may have started. If its name is in use, an earlier try by boto3 may have started it."""
    if isinstance(cause, ClientError):
        status = cast(Any, cause).response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return status >= 500 or error_code(cause) == "ResourceInUse"
    return isinstance(cause, ReadTimeoutError | ConnectionClosedError | ResponseParserError)

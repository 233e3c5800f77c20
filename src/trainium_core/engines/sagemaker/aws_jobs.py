"""A cluster's training jobs in SageMaker, with their logs in CloudWatch and their files in S3."""

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from itertools import islice
from typing import Any, cast
from urllib.parse import urlsplit

from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError
from botocore.parsers import ResponseParserError

from trainium_core.aws.prices import AwsPrices
from trainium_core.costs.estimate import Total, dollars
from trainium_core.engines.sagemaker.costs import SPOT_TRAINING, TRAINING
from trainium_core.engines.sagemaker.jobs.job import (
    REQUIRED_OUTPUTS,
    TrainingJob,
    new_training_job,
    on_spot,
    sagemaker_type,
)
from trainium_core.engines.sagemaker.jobs.request import channel_digest, channel_files, training_job_request
from trainium_core.engines.sagemaker.jobs.states import job_state
from trainium_core.facts import training_facts
from trainium_core.jobs.aws_transfers import download_object
from trainium_core.jobs.engine import NoStackError, StartUnknownError
from trainium_core.jobs.follow import LogLine
from trainium_core.jobs.problems import JobError, JobProblem
from trainium_core.jobs.progress import JobState
from trainium_core.jobs.request import JobRequest
from trainium_core.jobs.source_package import SourcePackage
from trainium_core.naming import training_job_prefix
from trainium_core.plan import Plan
from trainium_core.prices.price import PricedItem
from trainium_core.prices.quotes import quotes
from trainium_core.stacks.aws_stacks import AwsStacks
from trainium_runtime.aws_errors import DENIED, error_code, read_errors, write_errors
from trainium_runtime.aws_service import AwsService, Clients, is_aws
from trainium_runtime.errors import ABSENT_OBJECT, RequestRefusedError, UnavailableError
from trainium_wire.node_record import StoredRecord

_LARGEST_PAGE = 100  # The maximum of ListTrainingJobs.
_PAGES_AT_ONCE = 20  # Of one log stream, so that much output does not delay the check of the status.
_READERS = 8
_NOT_AWS = "requests do not go to AWS, and an emulator only records training jobs"
_NO_JOB = ("not found", "not find", "ResourceNotFound")
_NO_RESTART = "remove it: SageMaker does not start a job again, and --resume JOB continues from its checkpoints"


class SageMakerJobs(AwsService):
    """The jobs of a plan's SageMaker stack. Implements trainium_core.jobs.engine.JobEngine."""

    key = "sagemaker"
    shortest_poll, log_delay = 10.0, 10.0
    bills_jobs = True
    instead: Mapping[str, str] = {
        "command": "put the command into a script, and pass the script",
        "nodes": "remove it: a training job has all instances of the plan, trn:nodes",
        "setup": "remove it, and list packages in the source's requirements.txt, which the container installs",
        "stack": "remove it: the training image determines the software stack",
        "secrets": "remove it, and let the script read the secret as the job's role",
        "retries": _NO_RESTART,
        "retry_on_exit_codes": _NO_RESTART,
        "retry_on_hang": _NO_RESTART,
        "hang_minutes": "remove it, and set a time limit",
        "checkpoint_seconds": "remove it: SageMaker copies checkpoints when they change",
        "resume_files": "remove it: each instance gets all checkpoints",
        "rank": "remove it: the log does not show which process printed a line",
        "node": "remove it: each line has the name of its node",
        "attempt": "remove it: the log does not show which attempt printed a line",
        "observe": "remove it, or run the job on a cluster: its nodes read the counters of the frameworks",
        "profile": "remove it, and set NEURON_RT_INSPECT_ENABLE in the environment, which profiles every rank",
        "profile_device": "remove it, and set NEURON_RT_INSPECT_DEVICE_PROFILE in the environment",
        "queue": "remove it: SageMaker starts each training job on separate instances",
        "priority": "remove it: SageMaker starts each training job on separate instances",
        "recovery": "remove it: SageMaker does not start a job again after the loss of an instance",
        "wake": "remove it: SageMaker has no nodes to wake",
    }

    def __init__(self, plan: Plan, stack: str, clients: Clients) -> None:
        super().__init__(plan.region, clients=clients)
        self.plan, self.stack = plan, stack
        self._prefix = training_job_prefix(plan.cluster_name)

    def prepare(self, request: JobRequest, package: SourcePackage, now: datetime) -> "PreparedTrainingJob":
        deployed = AwsStacks(self.region, clients=self._clients).deployed_stack(self.stack)
        if deployed is None:
            raise NoStackError(self.stack, self.region)
        missing = [name for name in REQUIRED_OUTPUTS if name not in deployed.outputs]
        if missing:
            allowed = f"a stack with the outputs {', '.join(REQUIRED_OUTPUTS)}"
            fix = f"this stack lacks {', '.join(missing)}: name the SageMaker stack, or wait until it is deployed"
            raise JobError([JobProblem(key="--stack", got=self.stack, allowed=allowed, fix=fix)])
        folder = channel_digest(package)
        outputs = deployed.outputs
        job = new_training_job(self.plan, request, outputs, script=package.script, source_folder=folder, now=now)
        return PreparedTrainingJob(self, job, package, training_job_request(self.plan, job))

    def claims(self, job_id: str) -> bool:
        return job_id.startswith(self._prefix)

    def job_ids(self) -> Sequence[str]:
        return self._names(most=_LARGEST_PAGE)

    def newest(self, most: int) -> Sequence[JobState]:
        with ThreadPoolExecutor(_READERS) as readers:
            return [state for state in readers.map(self.state, self._names(most)) if state is not None]

    def last(self) -> JobState | None:
        return next(iter(self.newest(1)), None)

    def _names(self, most: int) -> list[str]:
        arguments = {"SortBy": "CreationTime", "SortOrder": "Descending", "NameContains": self._prefix}
        paging = {"PageSize": min(most, _LARGEST_PAGE)}
        with read_errors("sagemaker:ListTrainingJobs"):
            pages = self.client("sagemaker").get_paginator("list_training_jobs")
            names = (
                entry["TrainingJobName"]
                for page in pages.paginate(**arguments, PaginationConfig=paging)
                for entry in page["TrainingJobSummaries"]
            )
            return [*islice((name for name in names if self.claims(name)), most)]

    def _described(self, job_id: str) -> Mapping[str, Any] | None:
        with read_errors("sagemaker:DescribeTrainingJob", absent=_NO_JOB):
            return self.client("sagemaker").describe_training_job(TrainingJobName=job_id)
        return None

    def state(self, job_id: str, *, every_node: bool = False) -> JobState | None:  # noqa: ARG002 - all is in one answer
        described = self._described(job_id)
        if described is None:
            return None
        state = job_state(described)
        return state if self.runs_code else replace(state, places={**state.places, "note": f"no code ran: {_NOT_AWS}"})

    @property
    def runs_code(self) -> bool:
        """Whether training jobs run: only AWS runs them."""
        return is_aws(self.client("sagemaker").meta.endpoint_url)

    def open_log(
        self, job_id: str, *, rank: int | None = None, node: int | None = None, attempt: int | None = None
    ) -> "TrainingLog":
        assert rank is node is None, "the log has the lines of all nodes, without their ranks"
        assert attempt is None, "the log does not show attempts"
        return TrainingLog(job_id, self)

    def stop(self, job_id: str) -> None:
        with write_errors("sagemaker:StopTrainingJob"):
            self.client("sagemaker").stop_training_job(TrainingJobName=job_id)

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
        described = self._described(job_id) or {}
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

    def hourly(self, state: JobState) -> Total:
        described = self._described(state.job.id) or {}
        resources = described.get("ResourceConfig", {})
        if "TrainingPlanArn" in resources:
            return Total(usd=Decimal(0), unknown=0)  # Already paid.
        instance_type = resources.get("InstanceType", "").removeprefix(sagemaker_type(""))
        return self.price(
            instance_type, resources.get("InstanceCount", 0), spot=described.get("EnableManagedSpotTraining", False)
        )

    def price(self, instance_type: str, count: int, *, spot: bool) -> Total:
        """The hourly price of `count` instances."""
        product = SPOT_TRAINING if spot else TRAINING
        item = PricedItem(product=product, region=self.region, instance_type=instance_type)
        aws = AwsPrices(self.region, clients=self._clients)
        price = quotes([item], own=self.plan.prices, aws=aws).prices.get(item)
        if price is None or price.usd is None:
            return Total(usd=Decimal(0), unknown=1)
        return Total(usd=price.usd * count, unknown=0)

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
        with write_errors("s3:GetObject", absent=(*ABSENT_OBJECT, *DENIED)):
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

    def __init__(self, job_id: str, jobs: SageMakerJobs) -> None:
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


@dataclass
class PreparedTrainingJob:
    """Implements trainium_core.jobs.engine.PreparedJob."""

    jobs: SageMakerJobs
    job: TrainingJob
    package: SourcePackage
    request: Mapping[str, Any]

    @property
    def job_id(self) -> str:
        return self.job.name

    @property
    def as_json(self) -> Mapping[str, Any]:
        return self.request

    @property
    def as_text(self) -> str:
        return json.dumps(self.request, indent=2)

    def find_checkpoint(self) -> Sequence[str]:
        """SageMaker copies all checkpoints of the resumed job to its folder."""
        return ()

    def started_after_waking(self, seconds: float) -> None:
        raise NotImplementedError("check_keys refuses `wake`")

    def check(self) -> Sequence[str]:
        """Checks nothing: SageMaker validates quota, role and network when the job is created."""
        return () if self.jobs.runs_code else (f"No code will run: {_NOT_AWS}.",)

    def rows(self) -> Sequence[tuple[str, str]]:
        plan, job = self.jobs.plan, self.job
        spot = on_spot(plan, job.training_plan_arn)
        bought = f"in {job.training_plan_arn}" if job.training_plan_arn else "spot" if spot else "on demand"
        time = f"stopped after {job.max_minutes:,} min"
        if spot:
            time += f", or after {job.max_minutes + job.effective_wait_minutes:,} min with waits for spot capacity"
        if job.warm_pool_minutes:
            time += f"; the instances stay {job.warm_pool_minutes} min for the next job"
        return [
            ("instances", f"{plan.nodes} x {sagemaker_type(plan.instance_type)} in {plan.region}, {bought}"),
            ("image", job.image),
            ("output", job.output_url),
            ("checkpoints", job.checkpoint_url or "none"),
            ("network", ", ".join([*job.subnet_ids, *job.security_group_ids]) or "managed by SageMaker"),
            ("time", time),
            ("cost", self._cost(spot=spot)),
        ]

    def _cost(self, *, spot: bool) -> str:
        if self.job.training_plan_arn is not None:
            return "the training plan is prepaid"
        plan = self.jobs.plan
        hour = self.jobs.price(plan.instance_type, plan.nodes, spot=spot)
        if hour.unknown:
            return f"per hour: {hour}; set trn:prices to a file with your price"
        minutes = self.job.max_minutes + self.job.warm_pool_minutes
        return f"per hour: {hour}; at most, in {minutes / 60:g} h: {dollars(hour.usd * minutes / 60)}"

    def upload(self) -> None:
        self.jobs.put(self.job.source_url, channel_files(self.package))

    def submit(self) -> Sequence[str]:
        self.upload()
        self.jobs.create(self.request)
        return ()


def _group() -> str:
    return training_facts()["container"]["log_group"]


def _may_have_started(cause: BaseException | None) -> bool:
    """Whether the job may have started. If its name is in use, an earlier try by boto3 may have started it."""
    if isinstance(cause, ClientError):
        status = cast(Any, cause).response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return status >= 500 or error_code(cause) == "ResourceInUse"
    return isinstance(cause, ReadTimeoutError | ConnectionClosedError | ResponseParserError)

"""Asks SageMaker for training jobs, and CloudWatch Logs for what they wrote."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from trainium_core.engines.sagemaker.jobs.training_jobs import JobState, JobSummary, LogLine, LogPage, Stage
from trainium_core.facts import training_facts
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService
from trainium_runtime.errors import UnavailableError

_LARGEST_PAGE = 100  # of ListTrainingJobs
_PAGES_AT_ONCE = 20  # of one log stream: a talkative job must not keep its status from being looked at


class AwsTrainingJobs(AwsService):
    def training_job(self, name: str) -> JobState | None:
        with read_errors("sagemaker:DescribeTrainingJob", absent=("not found", "not find", "ResourceNotFound")):
            return _state(self.client("sagemaker").describe_training_job(TrainingJobName=name))
        return None

    def training_jobs(self, *, prefix: str = "", status: str = "", most: int) -> Sequence[JobSummary]:
        arguments: dict[str, Any] = {"SortBy": "CreationTime", "SortOrder": "Descending"}
        arguments |= {"NameContains": prefix} if prefix else {}
        arguments |= {"StatusEquals": status} if status else {}
        paging = {"PageSize": min(most, _LARGEST_PAGE)}
        with read_errors("sagemaker:ListTrainingJobs"):
            pages = self.client("sagemaker").get_paginator("list_training_jobs")
            entries = (
                entry
                for page in pages.paginate(**arguments, PaginationConfig=paging)
                for entry in page["TrainingJobSummaries"]
                if entry["TrainingJobName"].startswith(prefix)
            )
            return [
                JobSummary(
                    name=entry["TrainingJobName"],
                    status=entry["TrainingJobStatus"],
                    created=entry["CreationTime"].astimezone(UTC),
                    ended=_in_utc(entry.get("TrainingEndTime")),
                )
                for entry in islice(entries, most)
            ]

    def job_log(self, name: str, position: Mapping[str, str]) -> LogPage:
        lines: list[LogLine] = []
        reached, is_last = dict(position), True
        unread: UnavailableError | None = None
        for stream in self._streams(name):
            try:
                events, reached[stream], at_end = self._events(stream, reached.get(stream))
            except UnavailableError as error:  # such as a throttled one of many: the others are not read again for it
                unread = error
                continue
            is_last = is_last and at_end
            lines += [_line(stream, event) for event in events]
        if unread and not lines:
            raise unread
        in_order = sorted(lines, key=lambda line: line.time)
        return LogPage(lines=in_order, position=reached, is_last=is_last and unread is None)

    def _streams(self, name: str) -> Sequence[str]:
        """A stream for each node and attempt: `<job>/<node>-<time>`. The group comes with the first job of a region."""
        with read_errors("logs:DescribeLogStreams", absent=("ResourceNotFoundException",)):
            pages = self.client("logs").get_paginator("describe_log_streams")
            return [
                stream["logStreamName"]
                for page in pages.paginate(logGroupName=_group(), logStreamNamePrefix=f"{name}/")
                for stream in page["logStreams"]
            ]
        return []

    def _events(self, stream: str, token: str | None) -> tuple[list[Mapping[str, Any]], str, bool]:
        """The events after a token, the token after them, and whether that is the end.

        CloudWatch answers the same token at the end.
        """
        events: list[Mapping[str, Any]] = []
        at_end = False
        for _ in range(_PAGES_AT_ONCE):
            arguments: dict[str, Any] = {"logGroupName": _group(), "logStreamName": stream, "startFromHead": True}
            with read_errors("logs:GetLogEvents"):
                page = self.client("logs").get_log_events(**arguments, **({"nextToken": token} if token else {}))
                events += page["events"]
                at_end = page["nextForwardToken"] == token
                token = page["nextForwardToken"]
            if at_end:
                break
        return events, token or "", at_end


def _group() -> str:
    return training_facts()["container"]["log_group"]


def _in_utc(when: datetime | None) -> datetime | None:
    """As the names of jobs have it; boto3 answers in the zone of the machine."""
    return when.astimezone(UTC) if when else None


def _line(stream: str, event: Mapping[str, Any]) -> LogLine:
    node = stream.partition("/")[2].rpartition("-")[0]
    return LogLine(node=node, time=datetime.fromtimestamp(event["timestamp"] / 1000, UTC), text=event["message"])


def _state(entry: Mapping[str, Any]) -> JobState:
    transitions: Sequence[Mapping[str, Any]] = entry.get("SecondaryStatusTransitions") or ()
    resources = entry.get("ResourceConfig", {})
    return JobState(
        name=entry["TrainingJobName"],
        status=entry["TrainingJobStatus"],
        stage=entry["SecondaryStatus"],
        message=transitions[-1].get("StatusMessage", "") if transitions else "",
        reason=entry.get("FailureReason", ""),
        instance_type=resources.get("InstanceType", ""),
        instances=resources.get("InstanceCount", 0),
        created=_in_utc(entry.get("CreationTime")),
        started=_in_utc(entry.get("TrainingStartTime")),
        ended=_in_utc(entry.get("TrainingEndTime")),
        billable_seconds=entry.get("BillableTimeInSeconds"),
        model_url=entry.get("ModelArtifacts", {}).get("S3ModelArtifacts"),
        checkpoint_url=entry.get("CheckpointConfig", {}).get("S3Uri"),
        warm_pool=entry.get("WarmPoolStatus", {}).get("Status"),
        stages=tuple(
            Stage(name=one["Status"], started=one["StartTime"].astimezone(UTC), ended=_in_utc(one.get("EndTime")))
            for one in transitions
        ),
        on_spot=entry.get("EnableManagedSpotTraining", False),
        is_paid_for="TrainingPlanArn" in resources,
    )

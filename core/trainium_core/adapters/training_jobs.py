"""Asks SageMaker for training jobs, and CloudWatch Logs for what they wrote."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from trainium_core.account.training_jobs import JobState, JobSummary, LogLine, LogPage
from trainium_core.adapters.aws_service import AwsService, asking
from trainium_core.sagemaker.training_facts import training_facts

_LARGEST_PAGE = 100  # of ListTrainingJobs
_PAGES_AT_ONCE = 20  # of one log stream: a talkative job must not keep its status from being looked at


class AwsTrainingJobs(AwsService):
    def training_job(self, name: str) -> JobState | None:
        with asking("sagemaker:DescribeTrainingJob", absent=("not found", "not find", "ResourceNotFound")):
            return _state(self.client("sagemaker").describe_training_job(TrainingJobName=name))
        return None

    def training_jobs(self, *, name_contains: str = "", status: str = "", most: int) -> Sequence[JobSummary]:
        asked: dict[str, Any] = {"SortBy": "CreationTime", "SortOrder": "Descending"}
        asked |= {"NameContains": name_contains} if name_contains else {}
        asked |= {"StatusEquals": status} if status else {}
        paging = {"PageSize": min(most, _LARGEST_PAGE)}
        with asking("sagemaker:ListTrainingJobs"):
            pages = self.client("sagemaker").get_paginator("list_training_jobs")
            entries = (
                entry
                for page in pages.paginate(**asked, PaginationConfig=paging)
                for entry in page["TrainingJobSummaries"]
            )
            return [
                JobSummary(
                    name=entry["TrainingJobName"],
                    status=entry["TrainingJobStatus"],
                    created=entry["CreationTime"],
                    ended=entry.get("TrainingEndTime"),
                )
                for entry in islice(entries, most)
            ]

    def job_log(self, name: str, position: Mapping[str, str]) -> LogPage:
        lines: list[LogLine] = []
        reached = dict(position)
        for stream in self._streams(name):
            events, reached[stream] = self._events(stream, reached.get(stream))
            node = stream.partition("/")[2].rpartition("-")[0]
            lines += [
                LogLine(node=node, time=datetime.fromtimestamp(event["timestamp"] / 1000, UTC), text=event["message"])
                for event in events
            ]
        return LogPage(lines=sorted(lines, key=lambda line: line.time), position=reached)

    def _streams(self, name: str) -> Sequence[str]:
        """A stream for each node and attempt: `<job>/<node>-<time>`. The group comes with the first job of a region."""
        with asking("logs:DescribeLogStreams", absent=("ResourceNotFoundException",)):
            pages = self.client("logs").get_paginator("describe_log_streams")
            return [
                stream["logStreamName"]
                for page in pages.paginate(logGroupName=_group(), logStreamNamePrefix=f"{name}/")
                for stream in page["logStreams"]
            ]
        return []

    def _events(self, stream: str, token: str | None) -> tuple[list[Mapping[str, Any]], str]:
        """The events after a token, and the token after them; CloudWatch answers the same token at the end."""
        events: list[Mapping[str, Any]] = []
        for _ in range(_PAGES_AT_ONCE):
            asked: dict[str, Any] = {"logGroupName": _group(), "logStreamName": stream, "startFromHead": True}
            with asking("logs:GetLogEvents"):
                page = self.client("logs").get_log_events(**asked, **({"nextToken": token} if token else {}))
                events += page["events"]
                at_end = page["nextForwardToken"] == token
                token = page["nextForwardToken"]
            if at_end:
                break
        return events, token or ""


def _group() -> str:
    return training_facts()["container"]["log_group"]


def _state(entry: Mapping[str, Any]) -> JobState:
    transitions = entry.get("SecondaryStatusTransitions") or [{}]
    resources = entry.get("ResourceConfig", {})
    return JobState(
        name=entry["TrainingJobName"],
        status=entry["TrainingJobStatus"],
        stage=entry["SecondaryStatus"],
        message=transitions[-1].get("StatusMessage", ""),
        reason=entry.get("FailureReason", ""),
        instance_type=resources.get("InstanceType", ""),
        instances=resources.get("InstanceCount", 0),
        created=entry.get("CreationTime"),
        started=entry.get("TrainingStartTime"),
        ended=entry.get("TrainingEndTime"),
        billable_seconds=entry.get("BillableTimeInSeconds"),
        model_url=entry.get("ModelArtifacts", {}).get("S3ModelArtifacts"),
        checkpoint_url=entry.get("CheckpointConfig", {}).get("S3Uri"),
        warm_pool=entry.get("WarmPoolStatus", {}).get("Status"),
    )

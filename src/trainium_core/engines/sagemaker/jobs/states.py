"""Translates the descriptions of a job by AWS Batch and SageMaker into a JobState."""

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from trainium_core.engines.sagemaker.jobs.request import EXPECTED_PROCESSES, JOB_ID, SUBMITTED_BY
from trainium_core.jobs.progress import JobState
from trainium_wire.formats import time_text
from trainium_wire.job import FAILED, INTERRUPTED, STOPPED, SUCCEEDED, TIME_LIMIT, Job, Outcome
from trainium_wire.job_progress import Attempt, NodeProgress

INTERRUPTIONS = ("Interrupted", "Restarting")
PHASES = {
    "Downloading": "source",
    "DownloadingTrainingImage": "source",
    "Training": "running",
    "Uploading": "results",
    "Stopping": "results",
}
"""The phase of each stage of an attempt (SageMaker API Reference, DescribeTrainingJob, SecondaryStatus)."""

RESULTS = {"Completed": SUCCEEDED, "Failed": FAILED, "Stopped": STOPPED}
TIME_LIMIT_STAGES = ("MaxRuntimeExceeded", "MaxWaitTimeExceeded")

_NO_CAPACITY = "CapacityError"
"""Begins the FailureReason of a training job without capacity (AWS Batch User Guide, Jobs stuck in RUNNABLE due to
capacity)."""

WAITING = ("SUBMITTED", "PENDING", "RUNNABLE")
ENDED = ("SUCCEEDED", "FAILED")
"""States of service jobs (AWS Batch User Guide, Mapping AWS Batch service job status to SageMaker AI status)."""


def job_entry(service: Mapping[str, Any], training: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The description of a job in the form of DescribeTrainingJob.

    Args:
        service: The response of DescribeServiceJob.
        training: The response of DescribeTrainingJob for the latest attempt, if there is one.
    """
    status, terminated = service["status"], service.get("isTerminated", False)
    submitted = {"CreationTime": _moment(service.get("createdAt", 0))}
    if training is None or status in WAITING:
        return _entry_without_attempt(service) | submitted
    request: dict[str, Any] = json.loads(service["serviceRequestPayload"])
    entry: dict[str, Any] = {**request, **training, **submitted}
    if status in ENDED:
        if terminated and entry.get("FailureReason", "").startswith(_NO_CAPACITY):
            # It was stopped in its queue, to which it had returned.
            entry |= {"TrainingJobStatus": "Stopped", "FailureReason": service.get("statusReason", "")}
        elif entry["TrainingJobStatus"] == "Stopped" and _reached_time_limit(service):
            entry["SecondaryStatus"] = TIME_LIMIT_STAGES[0]  # SageMaker only sees that AWS Batch stopped it.
        if entry["TrainingJobStatus"] != "Completed":
            entry.setdefault("FailureReason", service.get("statusReason", ""))
    elif terminated:
        entry["TrainingJobStatus"] = "Stopping"  # AWS Batch notifies SageMaker within seconds.
    elif entry["TrainingJobStatus"] in RESULTS:
        # AWS Batch has not decided yet: without capacity, the job returns to its queue.
        entry |= {"TrainingJobStatus": "InProgress", "SecondaryStatus": status}
    return entry


def _reached_time_limit(service: Mapping[str, Any]) -> bool:
    """Whether the last attempt lasted as long as AWS Batch allows."""
    limit: int | None = service.get("timeoutConfig", {}).get("attemptDurationSeconds")
    started: int | None = service.get("startedAt")
    stopped: int | None = service.get("stoppedAt")
    if limit is None or started is None or stopped is None:
        return False
    return stopped - started >= limit * 1000


def _entry_without_attempt(service: Mapping[str, Any]) -> dict[str, Any]:
    """The description of a job that waits in its queue, or that ended there."""
    entry: dict[str, Any] = json.loads(service["serviceRequestPayload"])
    status, terminated = service["status"], service.get("isTerminated", False)
    reason = service.get("statusReason", "")
    if status in ENDED:
        state = "Stopped" if terminated else "Failed" if status == "FAILED" else "Completed"
        if state != "Completed":
            entry["FailureReason"] = reason
        if "stoppedAt" in service:
            entry["TrainingEndTime"] = _moment(service["stoppedAt"])
    else:
        state = "Stopping" if terminated else "InProgress"
    queue = service["jobQueue"].rpartition("/")[2]
    detail = reason or f"in the queue {queue}"
    stage = {"Status": status, "StatusMessage": detail}
    del entry["TrainingJobName"]
    return {**entry, "TrainingJobStatus": state, "SecondaryStatus": status, "SecondaryStatusTransitions": [stage]}


def _moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def job_state(entry: Mapping[str, Any]) -> JobState:
    """The state, from a description in the form of DescribeTrainingJob."""
    stages: Sequence[Mapping[str, Any]] = entry.get("SecondaryStatusTransitions") or ()
    outcome = _outcome(entry, stages)
    is_over = outcome is not None
    places = {
        "training job": entry.get("TrainingJobName"),
        "checkpoints": entry.get("CheckpointConfig", {}).get("S3Uri"),
        "outputs": entry.get("ModelArtifacts", {}).get("S3ModelArtifacts"),
        "warm pool": entry.get("WarmPoolStatus", {}).get("Status"),
    }
    return JobState(
        job=_job(entry),
        attempts=tuple(_attempts(stages, outcome)),
        outcome=outcome,
        stopping=entry["TrainingJobStatus"] == "Stopping",
        stage=entry["SecondaryStatus"],
        detail=stages[-1].get("StatusMessage", "") if stages and not is_over else "",
        is_billed=True,
        billed_seconds=entry.get("BillableTimeInSeconds"),
        places={name: place for name, place in places.items() if place},
    )


def _job(entry: Mapping[str, Any]) -> Job:
    algorithm, resources = entry.get("AlgorithmSpecification", {}), entry.get("ResourceConfig", {})
    script = [*algorithm.get("ContainerEntrypoint", ())[2:], *algorithm.get("ContainerArguments", ())]
    environment = dict(entry.get("Environment", {}))
    processes = environment.get(EXPECTED_PROCESSES, "")
    name = environment[JOB_ID]
    return Job(
        id=name,
        name=name,
        cluster=name.partition("--")[0],
        submitted_at=time_text(entry["CreationTime"].astimezone(UTC)),
        submitted_by=environment.get(SUBMITTED_BY, ""),
        nodes=resources.get("InstanceCount", 0),
        processes_per_node=int(processes) if processes.isdecimal() else 0,
        command=shlex.join(script),
        environment=environment,
        time_limit_seconds=entry.get("StoppingCondition", {}).get("MaxRuntimeInSeconds"),
    )


def _attempts(stages: Sequence[Mapping[str, Any]], outcome: Outcome | None) -> Iterator[Attempt]:
    """The attempts. An attempt begins with the first stage in PHASES, at the start or after an interruption."""
    attempts: list[list[Mapping[str, Any]]] = []
    interruptions: list[Mapping[str, Any]] = []
    begins = True
    for stage in stages:
        if stage["Status"] in INTERRUPTIONS:
            if not begins:
                interruptions.append(stage)
            begins = True
        elif stage["Status"] in PHASES:
            if begins:
                attempts.append([])
            attempts[-1].append(stage)
            begins = False
    for number, of_attempt in enumerate(attempts, 1):
        ended = _interrupted(interruptions[number - 1]) if number <= len(interruptions) else outcome
        yield Attempt(
            number=number,
            started=of_attempt[0]["StartTime"].astimezone(UTC),
            instance_ids=(),
            resume_from=None,
            nodes=(NodeProgress(node=0, instance_id="", state="", at=None, phases=_phases(of_attempt)),),
            outcome=ended,
        )


def _phases(stages: Iterable[Mapping[str, Any]]) -> Mapping[str, float]:
    """Seconds by phase, of the stages that have ended."""
    seconds: dict[str, float] = {}
    for stage in stages:
        if (ended := stage.get("EndTime")) is not None:
            phase = PHASES[stage["Status"]]
            seconds[phase] = seconds.get(phase, 0) + (ended - stage["StartTime"]).total_seconds()
    return seconds


def _interrupted(stage: Mapping[str, Any]) -> Outcome:
    return Outcome(result=INTERRUPTED, reason=stage.get("StatusMessage", ""), at=stage["StartTime"].astimezone(UTC))


def _outcome(entry: Mapping[str, Any], stages: Iterable[Mapping[str, Any]]) -> Outcome | None:
    result = RESULTS.get(entry["TrainingJobStatus"])
    if result is None:
        return None
    if {entry["SecondaryStatus"], *(stage["Status"] for stage in stages)} & {*TIME_LIMIT_STAGES}:
        result = TIME_LIMIT
    ended: datetime | None = entry.get("TrainingEndTime")
    return Outcome(result=result, reason=entry.get("FailureReason", ""), at=ended.astimezone(UTC) if ended else None)

"""The record of a training job, in the form of that of a cluster's job: trainium_core.jobs.record."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from trainium_core.engines.sagemaker.jobs.training_jobs import JobState
from trainium_core.jobs.record import seconds_between, text_of

PHASES = {
    "Starting": "queued",
    "Pending": "queued",
    "LaunchingMLInstances": "queued",
    "PreparingTrainingStack": "queued",
    "Interrupted": "queued",
    "Restarting": "queued",
    "Downloading": "source",
    "DownloadingTrainingImage": "source",
    "Training": "running",
    "Uploading": "outputs",
    "Stopping": "outputs",
}
"""The phase of each stage that lasts (SageMaker API Reference, DescribeTrainingJob, SecondaryStatus)."""

RESULTS = {"Completed": "succeeded", "Failed": "failed", "Stopped": "stopped"}
TIME_LIMIT_STAGES = ("MaxRuntimeExceeded", "MaxWaitTimeExceeded")
BROKEN_OFF = ("Interrupted", "Restarting")
_HOUR = 3600


def record_of(state: JobState, usd_per_hour: Decimal | None) -> Iterator[Mapping[str, Any]]:
    """The lines, in the order of time. usd_per_hour: of all instances; None: not known, nor is any `usd`.

    SageMaker says what it bills for the whole job alone, so only the end has dollars. A phase has AWS's own word for it
    as `stage`; after spot instances were taken away, or the job was restarted, the next `attempt` begins.
    """
    yield {
        "event": "submitted",
        "job": state.name,
        "at": text_of(state.created),
        "nodes": state.instances,
        "usd_per_hour": None if usd_per_hour is None else float(usd_per_hour),
    }
    attempt = 1
    for stage in state.stages:
        attempt += stage.name in BROKEN_OFF
        if stage.name in PHASES:
            phase = {"phase": PHASES[stage.name], "stage": stage.name}
            yield {
                "event": "phase",
                "attempt": attempt,
                **phase,
                "seconds": seconds_between(stage.started, stage.ended),
                "usd": None,
            }
    if state.is_over:
        exceeded = any(stage.name in TIME_LIMIT_STAGES for stage in state.stages) or state.stage in TIME_LIMIT_STAGES
        yield {
            "event": "end",
            "attempts": attempt,
            "at": text_of(state.ended),
            "result": "time-limit" if exceeded else RESULTS[state.status],
            "reason": state.reason or None,
            "seconds": seconds_between(state.created, state.ended),
            "billed_seconds": state.billable_seconds,
            "usd": _usd(state, usd_per_hour),
        }


def _usd(state: JobState, usd_per_hour: Decimal | None) -> float | None:
    if usd_per_hour is None or state.billable_seconds is None:
        return None
    return float(round(usd_per_hour * state.billable_seconds / _HOUR, 4))

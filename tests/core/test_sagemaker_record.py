"""The record of a training job, from the stages that SageMaker says."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import boto3
import pytest

from tests.core.fake_jobs import COMPLETED, FAILED, NOON, STOPPED, TRAINING, state
from tests.core.plans import from_settings
from trainium_core.engines.sagemaker.jobs.cost import usd_per_hour
from trainium_core.engines.sagemaker.jobs.record import PHASES, RESULTS, TIME_LIMIT_STAGES, record_of
from trainium_core.engines.sagemaker.jobs.training_jobs import JobState, Stage

LASTING = ("Starting", "Downloading", "Training", "Uploading")


def stages(*names: str) -> tuple[Stage, ...]:
    """One after the other, a minute each."""
    minutes = [NOON + timedelta(minutes=number) for number in range(len(names) + 1)]
    return tuple(Stage(name=name, started=minutes[n], ended=minutes[n + 1]) for n, name in enumerate(names))


DONE = replace(COMPLETED, stages=stages(*LASTING, "Completed"), ended=NOON + timedelta(minutes=4), billable_seconds=180)


def events(job: JobState, event: str, usd: Decimal | None = Decimal(40)) -> list[dict[str, Any]]:
    return [dict(line) for line in record_of(job, usd) if line["event"] == event]


def test_each_stage_that_lasts_is_a_phase_in_the_words_of_jobs_and_of_aws() -> None:
    found = [(one["phase"], one["stage"], one["seconds"], one["usd"]) for one in events(DONE, "phase")]
    phases = ("queued", "source", "running", "outputs")
    assert found == [(phase, stage, 60, None) for phase, stage in zip(phases, LASTING, strict=True)]


def test_the_end_has_what_sagemaker_bills() -> None:
    [end] = events(DONE, "end")
    assert (end["result"], end["seconds"], end["billed_seconds"], end["usd"]) == ("succeeded", 240, 180, 2.0)
    assert events(DONE, "end", None)[0]["usd"] is None
    assert events(replace(DONE, billable_seconds=None), "end")[0]["usd"] is None


def test_a_job_that_runs_has_no_end_and_its_stage_no_seconds() -> None:
    running = replace(TRAINING, stages=(Stage(name="Training", started=NOON),))
    assert [line["event"] for line in record_of(running, None)] == ["submitted", "phase"]
    assert events(running, "phase")[0]["seconds"] is None


@pytest.mark.parametrize(
    ("job", "result"),
    [
        (FAILED, "failed"),
        (STOPPED, "stopped"),
        (state("Stopped", "MaxRuntimeExceeded"), "time-limit"),
        (replace(STOPPED, stages=stages("Training", "MaxWaitTimeExceeded")), "time-limit"),
    ],
    ids=["failed", "stopped", "longest-run", "longest-wait"],
)
def test_the_result_is_one_of_those_of_jobs(job: JobState, result: str) -> None:
    [end] = events(job, "end")
    assert (end["result"], end["reason"]) == (result, job.reason or None)


def test_what_follows_an_interruption_is_another_attempt() -> None:
    job = replace(DONE, stages=stages("Starting", "Training", "Interrupted", "Training", "Completed"))
    assert [one["attempt"] for one in events(job, "phase")] == [1, 1, 2, 2]
    assert events(job, "end")[0]["attempts"] == 2


def test_the_stages_are_those_of_the_api() -> None:
    shapes = boto3.client("sagemaker", region_name="us-west-2").meta.service_model
    stage_names = set(shapes.shape_for("SecondaryStatus").enum)
    over = {"InProgress", "Updating", "Deleting"}
    assert {*PHASES, *TIME_LIMIT_STAGES} <= stage_names
    assert {*RESULTS} == {*shapes.shape_for("TrainingJobStatus").enum} - {*over, "Stopping"}


def test_instances_cost_their_price_and_nothing_with_a_training_plan() -> None:
    plan = from_settings(nodes=2)
    price = usd_per_hour(plan, DONE, aws=None)
    assert price is None or price > 0
    assert usd_per_hour(plan, replace(DONE, is_paid_for=True), aws=None) == 0
    assert usd_per_hour(plan, replace(DONE, instance_type="ml.none.1xlarge"), aws=None) is None

"""SageMaker jobs in the common form of all engines, against moto where it answers as AWS does, else against stubs."""

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.core.aws_stubs import client, put_record, stack_record
from tests.core.jobs import ROLE
from tests.core.training_jobs import NAME, NOON, STACK, deploy, described, prepared, printed, request_of, write
from trainium_core.costs.estimate import Total
from trainium_core.engines.sagemaker.aws_jobs import SageMakerJobs
from trainium_core.engines.sagemaker.jobs.request import channel_digest
from trainium_core.engines.sagemaker.jobs.states import (
    INTERRUPTIONS,
    PHASES,
    RESULTS,
    TIME_LIMIT_STAGES,
    job_state,
)
from trainium_core.jobs.engine import NoStackError
from trainium_core.jobs.problems import JobError
from trainium_core.jobs.progress import JobState
from trainium_core.jobs.record import attempt_records
from trainium_core.jobs.source_package import SourcePackage
from trainium_runtime.errors import RequestRefusedError

pytestmark = pytest.mark.usefixtures("made_up_credentials")


def ended(*stages: str, status: str = "Completed", **more: Any) -> JobState:
    end = {"TrainingEndTime": NOON + timedelta(minutes=len(stages)), "BillableTimeInSeconds": 180}
    return job_state(described(*stages, status, status=status, **end, **more))


def test_request_becomes_a_training_job_with_urls_of_the_stack(jobs: SageMakerJobs, package: SourcePackage) -> None:
    key = "arn:aws:kms:us-west-2:123456789012:key/1"
    deploy(
        subnet_ids=("subnet-1", "subnet-2"),
        security_group_ids=("sg-1",),
        kms_key_arn=key,
    )
    made = prepared(jobs, package, time_limit_minutes=90, warm_pool_minutes=5, resume="trn-pilot--first")
    job = made.job
    assert (job.name, job.script, job.role_arn) == (NAME, "train.py", ROLE)
    assert job.source_url == f"s3://trn-bucket/source/{channel_digest(package)}/"
    assert job.checkpoint_url == "s3://trn-bucket/checkpoints/trn-pilot--first"
    assert (job.output_url, job.kms_key) == ("s3://trn-bucket/output", key)
    assert job.cache_url == "s3://cache/neuron-compile-cache"
    assert (job.max_minutes, job.warm_pool_minutes) == (90, 5)
    assert request_of(made)["VpcConfig"] == {"Subnets": ["subnet-1", "subnet-2"], "SecurityGroupIds": ["sg-1"]}
    assert prepared(jobs, package).job.max_minutes == 24 * 60


def test_submitted_job_is_listed_with_uploaded_source(jobs: SageMakerJobs, package: SourcePackage) -> None:
    deploy()
    assert jobs.last() is None
    made = prepared(jobs, package)
    made.submit()
    state = jobs.state(NAME)
    assert state is not None
    assert (state.job.nodes, state.job.command, state.job.submitted_by) == (2, "train.py", "moto")
    assert state.status == "succeeded"  # moto's jobs complete at once.
    assert [state.job.id for state in jobs.newest(5)] == [NAME] == list(jobs.store.job_ids())
    assert jobs.claims(NAME)
    source = client("s3").list_objects_v2(Bucket="trn-bucket", Prefix="source/")["Contents"]
    assert [entry["Key"].rpartition("/")[2] for entry in source] == [
        "compile_cache_place.py",
        "container_entry.py",
        "source.tar.gz",
    ]
    assert jobs.state("trn-pilot--other") is None


def test_second_job_of_an_id_is_refused_although_both_were_checked(jobs: SageMakerJobs, package: SourcePackage) -> None:
    deploy()
    first, second = prepared(jobs, package), prepared(jobs, package)
    assert [*first.check(), *second.check()] == []
    first.submit()
    with pytest.raises(RequestRefusedError, match=f"another job has the ID {NAME}"):
        second.submit()
    assert list(jobs.store.job_ids()) == [NAME]


def test_files_are_listed_once_for_all_downloads(
    jobs: SageMakerJobs, package: SourcePackage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deploy()
    prepared(jobs, package).submit()
    client("s3").put_object(Bucket="trn-bucket", Key=f"checkpoints/{NAME}/a", Body=b"a")
    client("s3").put_object(Bucket="trn-bucket", Key=f"checkpoints/{NAME}/b/c", Body=b"c")
    assert jobs.store.files(NAME, "checkpoints/b") == {"checkpoints/b/c": 1}
    monkeypatch.setattr(jobs.store.client("s3"), "get_paginator", None)
    jobs.store.download(NAME, "checkpoints/b/c", str(tmp_path / "c"))
    assert (tmp_path / "c").read_bytes() == b"c"


def test_stages_become_phases_of_an_attempt() -> None:
    state = ended("Starting", "Downloading", "Training", "Uploading")
    lines = [line for line in attempt_records(state, Decimal(40)) if line["event"] == "phase"]
    assert [(line["phase"], line["seconds"], line["usd"]) for line in lines] == [
        ("queued", 60, None),
        ("source", 60, None),
        ("running", 60, None),
        ("results", 60, None),
    ]


def test_end_has_the_billed_seconds_and_their_cost() -> None:
    [*_, end] = attempt_records(ended("Starting", "Training"), Decimal(40))
    assert (end["result"], end["billed_seconds"], end["usd"]) == ("succeeded", 180, 2.0)
    [*_, unknown] = attempt_records(ended("Starting", "Training"), None)
    assert unknown["usd"] is None


def test_running_job_shows_the_stage_of_sagemaker() -> None:
    entry = described("Starting", "Training")
    entry["SecondaryStatusTransitions"][-1]["StatusMessage"] = "Training in progress"
    state = job_state(entry)
    assert (state.status, state.detail, state.is_over) == ("Training", "Training in progress", False)
    assert job_state(described("Starting")).attempts == ()
    assert job_state(described("Stopping", status="Stopping")).status == "stopping"


@pytest.mark.parametrize(
    ("stages", "status", "result"),
    [
        (("Training",), "Failed", "failed"),
        (("Training",), "Stopped", "stopped"),
        (("Training", "MaxRuntimeExceeded"), "Stopped", "time-limit"),
    ],
)
def test_result_is_one_of_the_common_results(stages: tuple[str, ...], status: str, result: str) -> None:
    outcome = ended(*stages, status=status, FailureReason="RuntimeError: no data").outcome
    assert outcome is not None
    assert (outcome.result, outcome.reason) == (result, "RuntimeError: no data")


def test_stages_and_results_are_those_of_the_api() -> None:
    shapes = client("sagemaker").meta.service_model
    assert {*PHASES, *INTERRUPTIONS, *TIME_LIMIT_STAGES} <= set(shapes.shape_for("SecondaryStatus").enum)
    running = {"InProgress", "Updating", "Deleting", "Stopping"}
    assert {*RESULTS} == {*shapes.shape_for("TrainingJobStatus").enum} - running


def test_lines_of_all_nodes_are_sorted_by_time(jobs: SageMakerJobs, package: SourcePackage) -> None:
    deploy()
    prepared(jobs, package).submit()
    assert printed(jobs) == []
    (training,) = client("sagemaker").list_training_jobs()["TrainingJobSummaries"]
    name = training["TrainingJobName"]
    write(f"{name}/algo-2-1700000000", "second", second=2)
    write(f"{name}/algo-1-1700000000", "first", second=1)
    write(f"{name}-other/algo-1-1700000000", "of another job")
    assert printed(jobs) == [("algo-1", "first"), ("algo-2", "second")]


def test_equal_source_is_uploaded_once(jobs: SageMakerJobs, monkeypatch: pytest.MonkeyPatch) -> None:
    deploy()
    jobs.store.put("s3://trn-bucket/source/abc/", {"a": b"x"})
    assert client("s3").get_object(Bucket="trn-bucket", Key="source/abc/a")["Body"].read() == b"x"
    monkeypatch.setattr(jobs.store.client("s3"), "put_object", None)
    jobs.store.put("s3://trn-bucket/source/abc/", {"a": b"x"})


def test_upload_to_a_missing_bucket_is_refused(jobs: SageMakerJobs) -> None:
    with pytest.raises(RequestRefusedError, match="NoSuchBucket"):
        jobs.store.put("s3://no-such-bucket/x", {"a": b""})


def test_interruption_begins_another_attempt() -> None:
    state = ended("Starting", "Training", "Interrupted", "Starting", "Training")
    outcomes = [attempt.outcome.result if attempt.outcome else None for attempt in state.attempts]
    assert outcomes == ["interrupted", "succeeded"]


def test_attempt_ends_with_its_first_interruption() -> None:
    stages = ("Interrupted", "Training", "Interrupted", "Restarting", "Training", "Interrupted", "Training")
    state = ended(*stages)
    ends = [attempt.outcome.at for attempt in state.attempts[:-1] if attempt.outcome]
    assert ends == [NOON + timedelta(minutes=2), NOON + timedelta(minutes=5)]


def test_interrupted_attempt_has_its_outcome_before_the_next_attempt() -> None:
    waiting = job_state(described("Starting", "Training", "Interrupted", "Starting"))
    over = ended("Starting", "Training", "Interrupted", "MaxWaitTimeExceeded", status="Stopped")
    for state, result in ((waiting, None), (over, "time-limit")):
        assert (state.outcome.result if state.outcome else None) == result
        (attempt,) = state.attempts
        assert attempt.outcome is not None
        assert (attempt.outcome.result, attempt.outcome.at) == ("interrupted", NOON + timedelta(minutes=2))


def test_missing_or_unsuitable_stack_is_refused(jobs: SageMakerJobs, package: SourcePackage) -> None:
    with pytest.raises(NoStackError, match="Stack SageMakerTrainingStack does not exist"):
        prepared(jobs, package)
    put_record(stack_record(STACK))
    with pytest.raises(JobError, match="a stack of trn-pilot for --on sagemaker"):
        prepared(jobs, package)


@pytest.mark.parametrize(
    ("described_as", "purchase", "why"),
    [
        ({}, "on-demand", ""),
        ({"EnableManagedSpotTraining": True}, "spot", ""),
        ({"ResourceConfig": {"TrainingPlanArn": "arn"}}, "training plan", "the training plan is prepaid"),
    ],
)
def test_price_basis_is_how_the_training_job_was_bought(
    jobs: SageMakerJobs, monkeypatch: pytest.MonkeyPatch, described_as: dict[str, Any], purchase: str, why: str
) -> None:
    def answer(_job_id: str) -> dict[str, Any]:
        return described("Training", **described_as)

    monkeypatch.setattr(jobs.store, "described", answer)
    basis = jobs.price_basis(ended())
    assert (basis.purchase, basis.not_paid) == (purchase, why)
    if why:
        assert jobs.hourly(ended()) == Total(usd=Decimal(0), unknown=1)

"""Following a job to its end, and running one from Python."""

from pathlib import Path

import pytest

from tests.core.fake_jobs import COMPLETED, FAILED, NAME, NO_ANSWER, STARTING, TRAINING, FakeJobs, line, state
from tests.core.jobs import JOB
from tests.core.plans import from_settings
from trainium_core.engines.sagemaker.jobs import follow
from trainium_core.engines.sagemaker.jobs.follow import POLL_SECONDS, UNANSWERED, JobFollower
from trainium_core.engines.sagemaker.jobs.run import run_training_job
from trainium_core.engines.sagemaker.jobs.source_channel import channel_digest, channel_files
from trainium_core.engines.sagemaker.jobs.training_jobs import JobState, LogLine
from trainium_core.jobs.problems import JobError
from trainium_core.jobs.source_package import SourcePackage, pack_source
from trainium_runtime.errors import RequestRefusedError, UnavailableError

PLAN = from_settings(nodes=2)


def followed(jobs: FakeJobs) -> list[JobState | LogLine]:
    return list(JobFollower(NAME, jobs, pause=lambda _: None).events())


def test_each_state_is_reported_once_and_the_end_last() -> None:
    assert followed(FakeJobs(states=[STARTING, STARTING, TRAINING, TRAINING, COMPLETED])) == [
        STARTING,
        TRAINING,
        COMPLETED,
    ]


def test_another_message_is_another_state() -> None:
    downloading = state(message="Downloading the image")
    assert followed(FakeJobs(states=[TRAINING, downloading, FAILED])) == [TRAINING, downloading, FAILED]


def test_lines_come_in_between_and_before_the_end() -> None:
    jobs = FakeJobs(states=[TRAINING, TRAINING, COMPLETED], written=[[], [line("a")], [line("b")]])
    assert followed(jobs) == [TRAINING, line("a"), line("b"), COMPLETED]


def test_lines_that_cloudwatch_shows_after_the_end_are_reported() -> None:
    assert followed(FakeJobs(states=[COMPLETED], written=[[], [line("late")]])) == [line("late"), COMPLETED]


def test_a_job_that_is_over_is_followed_to_the_end_of_its_log() -> None:
    jobs = FakeJobs(states=[COMPLETED], written=[[line("a")], [line("b")], [line("c")]], pages=3)
    assert followed(jobs) == [line("a"), line("b"), line("c"), COMPLETED]


def test_a_log_that_cannot_be_read_does_not_decide_about_the_job() -> None:
    jobs = FakeJobs(states=[TRAINING, COMPLETED], written=[NO_ANSWER, [line("a")]])
    assert followed(jobs) == [TRAINING, line("a"), COMPLETED]


def test_a_few_polls_without_an_answer_are_tolerated() -> None:
    unavailable = [NO_ANSWER] * (UNANSWERED - 1)
    assert followed(FakeJobs(states=[*unavailable, TRAINING, *unavailable, COMPLETED])) == [TRAINING, COMPLETED]


def test_no_answer_for_long_ends_without_a_result() -> None:
    with pytest.raises(UnavailableError, match="no answer about the job"):
        followed(FakeJobs(states=[TRAINING, *[NO_ANSWER] * UNANSWERED, COMPLETED]))


def test_a_job_that_is_not_there_ends_without_a_result() -> None:
    with pytest.raises(UnavailableError, match=f"no training job {NAME}"):
        followed(FakeJobs(states=[None]))


def test_it_waits_between_the_polls() -> None:
    waited: list[float] = []
    list(JobFollower(NAME, FakeJobs(states=[TRAINING, COMPLETED]), pause=waited.append).events())
    assert waited == [POLL_SECONDS, POLL_SECONDS]


def test_following_goes_on_where_it_was_left() -> None:
    jobs = FakeJobs(states=[STARTING, TRAINING, COMPLETED], written=[[line("a")], [line("b")]])
    follower = JobFollower(NAME, jobs, pause=lambda _: None)
    first = follower.events()
    assert [next(first), next(first)] == [line("a"), STARTING]
    first.close()
    assert list(follower.events()) == [line("b"), TRAINING, COMPLETED]


@pytest.fixture
def package(tmp_path: Path) -> SourcePackage:
    (tmp_path / "learn.py").write_text("print('learnt')")
    return pack_source(tmp_path / "learn.py")


def test_python_runs_a_job_in_one_call(package: SourcePackage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "POLL_SECONDS", 0)
    messages: list[JobState | LogLine] = []
    jobs = FakeJobs(written=[[line("a")]])
    assert run_training_job(PLAN, JOB, package, aws=jobs, on_progress=messages.append) == COMPLETED
    assert messages == [line("a"), STARTING, TRAINING, COMPLETED]
    (request,) = jobs.started
    folder = request["InputDataConfig"][0]["DataSource"]["S3DataSource"]["S3Uri"]
    assert jobs.uploaded == {folder: channel_files(package)}
    assert folder.endswith(f"/{channel_digest(package)}/")
    assert request["AlgorithmSpecification"]["ContainerEntrypoint"][-1] == "learn.py"


def test_a_job_against_the_rules_uploads_nothing(package: SourcePackage) -> None:
    jobs = FakeJobs()
    with pytest.raises(JobError):
        run_training_job(from_settings(instance_type="trn2.3xlarge", region="sa-east-1"), JOB, package, aws=jobs)
    assert (jobs.uploaded, jobs.started) == ({}, [])


def test_a_refusal_of_aws_is_passed_on(package: SourcePackage) -> None:
    with pytest.raises(RequestRefusedError, match="no money"):
        run_training_job(PLAN, JOB, package, aws=FakeJobs(refuses="no money"))

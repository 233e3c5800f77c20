"""The message about the job on nodes that end, with S3 of moto."""

from collections.abc import Iterator

import pytest

from tests.core.aws_stubs import stack_record
from tests.core.job_bucket import JOB, NodesOfAJob, job_bucket
from tests.core.plans import GOOD, from_settings
from trainium_cli.cluster import node_end
from trainium_cli.cluster.node_end import has_job, running_job_sentence
from trainium_cli.invocation import Invocation
from trainium_core.jobs.aws_job_store import JobStore
from trainium_wire.stack_record import StackRecord


class Fleets:
    """A stack with a record, or none."""

    bucket: str | None = None

    def __init__(self, _region: str, **_: object) -> None: ...

    def fleet_record(self, stack: str) -> StackRecord | None:
        return stack_record(stack, bucket=self.bucket) if self.bucket else None


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[JobStore, NodesOfAJob]]:
    monkeypatch.setattr(node_end, "AwsFleets", Fleets)
    with job_bucket() as found:
        monkeypatch.setattr(Fleets, "bucket", found[0].bucket)
        yield found


def test_unfinished_job_is_named(jobs: tuple[JobStore, NodesOfAJob]) -> None:
    s3, nodes = jobs
    s3.submit(JOB, b"", over=None)
    nodes.start()
    expected = f"{JOB.id} has not ended (starting): unsaved state will be lost"
    assert running_job_sentence(Invocation(), from_settings(**GOOD), "TrnClusterStack") == expected


def test_no_job_and_a_finished_job_are_not_reported(jobs: tuple[JobStore, NodesOfAJob]) -> None:
    s3, nodes = jobs
    assert running_job_sentence(Invocation(), from_settings(**GOOD), "TrnClusterStack") is None
    s3.submit(JOB, b"", over=None)
    nodes.end("succeeded")
    assert running_job_sentence(Invocation(), from_settings(**GOOD), "TrnClusterStack") is None


@pytest.mark.usefixtures("jobs")
def test_unreadable_state_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fleets, "bucket", "trn-gone")
    sentence = running_job_sentence(Invocation(), from_settings(**GOOD), "TrnClusterStack")
    assert sentence is not None
    assert sentence.startswith("unknown whether a job is running: ")
    assert has_job(Invocation(), from_settings(**GOOD), "TrnClusterStack") is None


def test_job_uses_nodes_until_all_have_stored_its_results(jobs: tuple[JobStore, NodesOfAJob]) -> None:
    s3, nodes = jobs
    arguments = (Invocation(), from_settings(**GOOD), "TrnClusterStack")
    assert has_job(*arguments) is False
    s3.submit(JOB, b"", over=None)
    nodes.start()
    assert has_job(*arguments) is True
    nodes.end("succeeded", attempts=1)
    nodes.end_attempt("succeeded")
    nodes.node(0, "succeeded")
    nodes.node(1, "results")
    assert has_job(*arguments) is True
    nodes.node(1, "succeeded")
    assert has_job(*arguments) is False

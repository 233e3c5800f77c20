"""The controller publishes a notice for each end of a job, once."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.runtime.handlers.conftest import SETTINGS, PartialClient
from tests.runtime.handlers.fleet import BUCKET, Clock, Context, client
from trainium_runtime.controller.job_ends import job_notice
from trainium_runtime.handlers import controller
from trainium_wire.job import Job
from trainium_wire.job_keys import job_keys

TOPIC = "arn:aws:sns:us-west-2:123456789012:notices"
JOB = Job(
    id="train-20261121-120000",
    nodes=2,
    processes_per_node=32,
    command="torchrun train.py",
    cluster="trn-pilot",
    submitted_at="2026-11-21T12:00:00Z",
    submitted_by="Admin/alice",
)
KEYS = job_keys(JOB.id)
END = {"result": "failed", "reason": "RuntimeError: no data", "at": "2026-11-21T13:30:05Z", "attempts": 2}


@dataclass
class Topic:
    """SNS, which refuses as many messages as a test says."""

    refusals: int = 0
    published: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def publish(self, **message: Any) -> None:
        if self.refusals:
            self.refusals -= 1
            raise ClientError({"Error": {"Code": "InternalError"}}, "Publish")
        self.published.append(message)


@pytest.fixture
def topic(clients: dict[str, Any]) -> Topic:
    topic = Topic()
    clients["sns"] = PartialClient(client("sns"), publish=topic.publish)
    return topic


Ended = Callable[..., None]


@pytest.fixture
def ended(topic: Topic, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Ended:  # noqa: ARG001
    """Runs the function for an object of the bucket, in an invocation."""
    for name, value in {**SETTINGS, "JOB_NOTICES": TOPIC}.items():
        monkeypatch.setenv(name, value)

    def run(key: str = KEYS.end, invocation: str = "request-1") -> None:
        event = {"source": "aws.s3", "detail": {"bucket": {"name": BUCKET}, "object": {"key": key}}}
        controller.handle(event, Context(clock, aws_request_id=invocation))

    return run


def store(key: str, content: str) -> None:
    client("s3").put_object(Bucket=BUCKET, Key=key, Body=content.encode())


def test_notice_states_no_attempts_of_an_end_that_no_node_wrote() -> None:
    assert "Attempts" not in job_notice(JOB, {**END, "attempts": 0}, region="us-west-2").message


def test_notice_says_how_the_job_ended_and_how_to_read_its_results() -> None:
    notice = job_notice(JOB, END, region="us-west-2")
    assert notice.subject == "trn-pilot: failed: train-20261121-120000"
    assert (
        notice.message
        == """\
Job train-20261121-120000 of cluster trn-pilot: failed
Submitted: 2026-11-21T12:00Z by Admin/alice
Ended: 2026-11-21T13:30:05Z, 1:30:05 after its submission
Attempts: 2
Reason: RuntimeError: no data

trn jobs train-20261121-120000 --cluster trn-pilot --region us-west-2
trn logs train-20261121-120000 --cluster trn-pilot --region us-west-2
trn cp train-20261121-120000:outputs train-20261121-120000 --cluster trn-pilot --region us-west-2"""
    )


def test_notice_of_lost_results_says_what_is_not_stored() -> None:
    lost = job_notice(JOB, END | {"result": "results-lost", "reason": "node-1: outputs/a"}, region="us-west-2")
    assert "Not stored: node-1: outputs/a\n" in lost.message


def test_subject_of_a_long_job_id_has_a_length_that_sns_accepts() -> None:
    assert len(job_notice(replace(JOB, id="a" * 128), END, region="us-west-2").subject) == 100


def test_notice_is_published_once_for_repeated_events(ended: Ended, topic: Topic) -> None:
    store(KEYS.job, JOB.to_json())
    store(KEYS.end, json.dumps(END))
    ended()
    ended(invocation="request-2")
    (message,) = topic.published
    assert message["TopicArn"] == TOPIC
    assert message["Subject"] == "trn-pilot: failed: train-20261121-120000"


def test_failed_invocation_publishes_when_lambda_repeats_it(ended: Ended, topic: Topic) -> None:
    store(KEYS.job, JOB.to_json())
    store(KEYS.end, json.dumps(END))
    topic.refusals = 1
    with pytest.raises(ClientError):
        ended()
    ended()
    assert len(topic.published) == 1


@pytest.mark.parametrize(
    ("key", "job", "end"),
    [
        (KEYS.attempt(1).end, JOB.to_json(), json.dumps(END)),
        (KEYS.end, None, json.dumps(END)),
        (KEYS.end, JOB.to_json(), "not JSON"),
        (KEYS.end, JOB.to_json(), "[]"),
        (f"{KEYS.folder}/outputs/end.json", JOB.to_json(), json.dumps(END)),
    ],
    ids=["attempt", "no job", "no JSON", "no object", "output"],
)
def test_other_object_causes_no_notice(ended: Ended, topic: Topic, key: str, job: str | None, end: str) -> None:
    store(key, end)
    if job:
        store(KEYS.job, job)
    ended(key)
    assert topic.published == []

"""EventBridge Scheduler of the embedded AWS invokes functions, by a clock that tests set forward."""

import io
import json
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from tests.deploy.clock import MovableClock
from tests.local.code_entry import readable
from tests.local.conftest import EmbeddedAws
from trainium_local.environment import ACCOUNT_ID
from trainium_local.server import Settings
from trainium_local.services.schedules import next_run

Scheduled = Callable[[str, str], Callable[[], list[float]]]

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
CODE = """
import json, time
import boto3

def handle(event, context):
    body = json.dumps({"event": event, "time": time.time()})
    boto3.client("sqs").send_message(QueueUrl=event["queue"], MessageBody=body)
"""


@pytest.fixture(scope="module")
def aws(start_embedded_aws: Callable[[Settings], EmbeddedAws]) -> EmbeddedAws:
    return start_embedded_aws(Settings())


@pytest.fixture(scope="module")
def clock(aws: EmbeddedAws) -> MovableClock:
    return MovableClock(connection=aws.connection)


@pytest.fixture(scope="module")
def function(aws: EmbeddedAws) -> str:
    """The ARN of a function that sends its event and the time to a queue."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as package:
        package.writestr(readable("index.py"), CODE)
    role = f"arn:aws:iam::{ACCOUNT_ID}:role/r"
    aws.client("iam").create_role(RoleName="r", AssumeRolePolicyDocument="{}")
    return aws.client("lambda").create_function(
        FunctionName="reporter",
        Runtime="python3.14",
        Role=role,
        Handler="index.handle",
        Code={"ZipFile": archive.getvalue()},
        Timeout=300,
    )["FunctionArn"]


def make_schedule(aws: EmbeddedAws, function: str, name: str, expression: str, event: str) -> None:
    aws.client("scheduler").create_schedule(
        Name=name,
        ScheduleExpression=expression,
        FlexibleTimeWindow={"Mode": "OFF"},
        Target={"Arn": function, "RoleArn": f"arn:aws:iam::{ACCOUNT_ID}:role/r", "Input": event},
    )


@pytest.fixture
def calls_of(aws: EmbeddedAws, clock: MovableClock, function: str) -> Scheduled:
    """A function that makes a schedule. It returns a function for the times of the calls not yet returned."""
    return lambda name, expression: _schedule(aws, clock, function, name, expression)


def _schedule(
    aws: EmbeddedAws, clock: MovableClock, function: str, name: str, expression: str
) -> Callable[[], list[float]]:
    queue = aws.client("sqs").create_queue(QueueName=name)["QueueUrl"]
    make_schedule(aws, function, name, expression, json.dumps({"queue": queue}))
    clock.forward(minutes=1)  # Now the scheduler has seen the schedule; it counts from then.

    def times() -> list[float]:
        sqs = aws.client("sqs")
        found = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages", [])
        for message in found:
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
        return [json.loads(message["Body"])["time"] for message in found]

    return times


def test_rate_runs_once_after_any_interval(clock: MovableClock, calls_of: Scheduled) -> None:
    called = calls_of("often", "rate(5 minutes)")
    clock.forward(minutes=3)  # The scheduler saw the schedule three or four minutes ago.
    assert called() == []
    clock.forward(minutes=3)
    assert len(called()) == 1
    clock.forward(hours=3)
    assert len(called()) == 1


def test_function_sees_time_of_embedded_aws(clock: MovableClock, calls_of: Scheduled) -> None:
    called = calls_of("seldom", "rate(1 hour)")
    clock.forward(days=40)
    (at,) = called()
    assert abs(at - clock.now.timestamp()) < 600


def test_clock_cannot_be_set_back(clock: MovableClock) -> None:
    with pytest.raises(ValueError, match="already"):
        clock.forward(hours=-1)


@pytest.mark.parametrize(
    ("expression", "after"),
    [("rate(1 minute)", timedelta(minutes=1)), ("rate(12 hours)", timedelta(hours=12)), ("rate(2 days)", timedelta(2))],
)
def test_rate_counts_from_the_last_run(expression: str, after: timedelta) -> None:
    assert next_run(expression, NOON) == NOON + after


def test_scheduled_time_in_the_input_is_a_multiple_of_the_rate(
    aws: EmbeddedAws, clock: MovableClock, function: str
) -> None:
    """So the windows of successive runs meet, although a run begins a little late."""
    queue = aws.client("sqs").create_queue(QueueName="scheduled")["QueueUrl"]
    event = json.dumps({"queue": queue, "at": "<aws.scheduler.scheduled-time>"})
    make_schedule(aws, function, "scheduled", "rate(5 minutes)", event)
    clock.forward(minutes=1)
    times: list[datetime] = []
    for _ in range(2):
        clock.forward(minutes=12)
        (message,) = aws.client("sqs").receive_message(QueueUrl=queue)["Messages"]
        aws.client("sqs").delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
        times.append(datetime.fromisoformat(json.loads(message["Body"])["event"]["at"]))
    assert (times[1] - times[0]) % timedelta(minutes=5) == timedelta()
    assert timedelta() <= clock.now - times[1] < timedelta(minutes=6)


def test_at_expression_runs_once() -> None:
    assert next_run("at(2026-11-21T13:00:00)", NOON) == NOON + timedelta(hours=1)
    assert next_run("at(2026-11-21T12:00:00)", NOON) == datetime.max.replace(tzinfo=UTC)


def test_unsupported_expression_never_runs() -> None:
    assert next_run("cron(0 12 * * ? *)", NOON) is None

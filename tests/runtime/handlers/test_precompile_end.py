"""The function that terminates the precompile host and closes its job, against moto's Auto Scaling and S3."""

import json
from typing import Any

import pytest

from tests.runtime.handlers.conftest import REGION
from tests.runtime.handlers.fleet import BUCKET, GROUP, Fleet, client
from trainium_runtime.handlers.precompile_end import ENDED, NOT_LAUNCHED, close_job, terminate_host


def report_of(instance: str) -> dict[str, Any]:
    return {"detail": {"object": {"key": f"precompile/{instance}.json"}}}


@pytest.fixture
def host() -> Fleet:
    return Fleet(nodes=1, region=REGION)


def test_report_of_the_host_terminates_it(host: Fleet) -> None:
    assert terminate_host(report_of(host.instances[0]), client("autoscaling"), GROUP)
    assert host.instances == []


def test_late_report_of_an_earlier_host_keeps_the_next(host: Fleet) -> None:
    assert not terminate_host(report_of("i-0123456789abcdef0"), client("autoscaling"), GROUP)
    assert len(host.instances) == 1


SETTINGS = {"GROUP": GROUP, "BUCKET": BUCKET, "JOB_KEY": "precompile.json"}
BEFORE, NOW, AFTER = "2026-11-23T11:59:59Z", "2026-11-23T12:00:00Z", "2026-11-23T12:00:01Z"


def activity(kind: str, **detail: str) -> dict[str, Any]:
    """The event of Auto Scaling, with the parts that the function reads."""
    return {"source": "aws.autoscaling", "detail-type": kind, "time": NOW, "detail": {**detail}}


def termination(**detail: str) -> dict[str, Any]:
    return activity(ENDED, EC2InstanceId="i-1", **detail)


def put(key: str, content: Any) -> None:
    client("s3").put_object(Bucket=BUCKET, Key=key, Body=json.dumps(content).encode())


def end_of_job() -> Any:
    found = client("s3").list_objects_v2(Bucket=BUCKET, Prefix="jobs/").get("Contents", [])
    return json.loads(client("s3").get_object(Bucket=BUCKET, Key=found[0]["Key"])["Body"].read()) if found else None


def close(event: dict[str, Any]) -> bool:
    return close_job(event, client("autoscaling"), client("s3"), SETTINGS)


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (activity(NOT_LAUNCHED, StatusMessage="no capacity\nhere"), "EC2 did not launch a host: no capacity here"),
        (termination(Cause="a user request"), "the host was terminated before its job ended (a user request)"),
        (termination(), "the host was terminated before its job ended"),
    ],
    ids=["not-launched", "terminated", "terminated-without-cause"],
)
def test_job_that_loses_its_host_fails_and_group_is_emptied(host: Fleet, event: dict[str, Any], reason: str) -> None:
    put("precompile.json", {"id": "precompile-a", "submitted_at": NOW})
    assert close(event)
    assert end_of_job()["result"] == "failed"
    assert end_of_job()["reason"] == reason
    assert host.instances == []


@pytest.mark.usefixtures("host")
def test_last_report_of_the_host_is_the_reason() -> None:
    put("precompile.json", {"id": "precompile-a", "submitted_at": BEFORE})
    put("precompile/AROAEXAMPLEEXAMPLE0:i-1.json", {"state": "failed", "reason": "setup.sh: exit 3"})
    assert close(termination())
    assert end_of_job()["reason"] == "the host could not start: setup.sh: exit 3"


@pytest.mark.usefixtures("host")
def test_ended_job_keeps_its_result() -> None:
    put("precompile.json", {"id": "precompile-a", "submitted_at": BEFORE})
    put("jobs/precompile-a/end.json", {"result": "succeeded"})
    assert not close(termination())
    assert end_of_job() == {"result": "succeeded"}


@pytest.mark.parametrize("event", [termination(), termination(StartTime=BEFORE)], ids=["time", "StartTime"])
def test_end_of_an_earlier_host_does_not_affect_the_next_job(host: Fleet, event: dict[str, Any]) -> None:
    put("precompile.json", {"id": "precompile-b", "submitted_at": AFTER})
    assert not close(event)
    assert end_of_job() is None
    assert len(host.instances) == 1

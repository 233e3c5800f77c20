"""The guard of EKS nodes: its decision on values, and its calls to Auto Scaling, EC2 and S3 in moto."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.handlers.conftest import PartialClient
from tests.runtime.handlers.fleet import BUCKET, GROUP, Fleet, client
from trainium_runtime import node_store
from trainium_runtime.handlers import eks_node_guard
from trainium_runtime.handlers.eks_node_guard import NotEndedError, end_nodes, handle, nodes_to_end, running_instances
from trainium_wire.node_record import NodeRecord, State, StoredRecord, stored_record

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
AT_MINIMUM = "Currently, desiredSize equals minSize (0)."


def stored(
    state: State,
    minutes: int,
    *,
    verified: tuple[str, ...] = (),
    name: str = "i-1",
    time: str = "2026-11-24T12:00:00Z",
) -> StoredRecord:
    record = NodeRecord(instance_id=name, state=state, reason="core 3", time=time, verified=verified)
    return stored_record(name, record.to_json(), NOW - timedelta(minutes=minutes))


def launched(*instances: str, minutes: int = 1000) -> dict[str, datetime]:
    return dict.fromkeys(instances, NOW - timedelta(minutes=minutes))


@pytest.mark.parametrize(
    ("record", "is_ended"),
    [
        pytest.param(stored("failed", 30), True, id="failed-for-30-minutes"),
        pytest.param(stored("failed", 29), False, id="failed-for-29-minutes"),
        pytest.param(stored("verified", 600), False, id="verified"),
        pytest.param(stored("draining", 600), False, id="draining"),
        pytest.param(stored("failed", 600, verified=("verified", "")), False, id="failed-after-its-verification"),
        pytest.param(stored_record("i-1", "{", NOW - timedelta(days=1)), False, id="invalid-record"),
        pytest.param(stored_record("i-1", None, NOW - timedelta(days=1)), False, id="too-large-record"),
    ],
)
def test_node_is_ended_only_long_after_its_failed_verification(record: StoredRecord, is_ended: bool) -> None:
    assert nodes_to_end(launched("i-1"), {"i-1": record}, NOW) == ({"i-1": "core 3"} if is_ended else {})


@pytest.mark.parametrize(
    ("time", "minutes_since_launch", "is_ended"),
    [
        pytest.param("2026-11-24T11:30:00Z", 1000, True, id="first-failure-30-minutes-ago"),
        pytest.param("2026-11-24T11:31:00Z", 1000, False, id="first-failure-29-minutes-ago"),
        pytest.param("1970-01-01T00:00:00Z", 29, False, id="wrong-clock-launched-29-minutes-ago"),
        pytest.param("1970-01-01T00:00:00Z", 30, True, id="wrong-clock-launched-30-minutes-ago"),
    ],
)
def test_failed_node_whose_record_is_rewritten_is_ended(time: str, minutes_since_launch: int, is_ended: bool) -> None:
    record = stored("failed", 1, time=time)
    ended = nodes_to_end(launched("i-1", minutes=minutes_since_launch), {"i-1": record}, NOW)
    assert (ended != {}) == is_ended


@pytest.mark.parametrize(("minutes", "is_ended"), [(119, False), (120, True)])
def test_node_without_any_record_is_ended_after_two_hours(minutes: int, is_ended: bool) -> None:
    ended = nodes_to_end(launched("i-1", minutes=minutes), {}, NOW)
    assert [*ended] == (["i-1"] if is_ended else [])
    assert not is_ended or "did not join" in ended["i-1"]


def test_record_of_another_instance_ends_no_node() -> None:
    foreign = NodeRecord(instance_id="i-2", state="failed", reason="core 3", time="2026-11-24T12:00:00Z")
    record = stored_record("i-1", foreign.to_json(), NOW - timedelta(days=1))
    records = {"i-1": record, "i-2": stored("failed", 60, name="i-2")}
    assert nodes_to_end(launched("i-1"), records, NOW) == {}


NAMES = [f"i-{number}" for number in range(6)]
RECORDS = st.dictionaries(
    st.sampled_from(NAMES), st.builds(stored, st.sampled_from(["verified", "failed", "draining"]), st.integers(0, 90))
)


@given(st.sets(st.sampled_from(NAMES)), RECORDS)
def test_ended_nodes_are_running_and_failed(running: set[str], records: Mapping[str, StoredRecord]) -> None:
    ended = nodes_to_end(launched(*running, minutes=100), records, NOW)
    old = {name for name, each in records.items() if each.written <= NOW - timedelta(minutes=30)}
    assert set(ended) == {name for name in running & old if records[name].record.state == "failed"}


def tag(*instances: str, bucket: str = BUCKET) -> None:
    client("ec2").create_tags(Resources=[*instances], Tags=[{"Key": "trn:records", "Value": bucket}])


def sizes() -> tuple[int, set[str]]:
    """The desired size of the group, and its instances that run."""
    (group,) = client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[GROUP])["AutoScalingGroups"]
    filters = [{"Name": "instance-state-name", "Values": ["running"]}]
    pages = client("ec2").describe_instances(Filters=filters)["Reservations"]
    running = {each["InstanceId"] for entry in pages for each in entry["Instances"]}
    return group["DesiredCapacity"], running


def test_failed_node_is_ended_and_the_desired_size_lowered_by_one(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RECORDS_BUCKET", BUCKET)
    monkeypatch.setattr(eks_node_guard, "PATIENCE", timedelta())
    monkeypatch.setattr(eks_node_guard, "LONGEST_VERIFICATION", timedelta())
    monkeypatch.setattr(boto3, "client", client)
    failed, verified = fleet.instances
    tag(failed, verified)
    fleet.fail(failed, "core 3 computed wrong")
    fleet.verify(verified, connected=False)
    handle({}, None)
    assert sizes() == (1, {verified})
    (line,) = [line for line in capsys.readouterr().out.splitlines() if failed in line]
    assert '"ended"' in line
    assert "core 3 computed wrong" in line


def test_only_instances_that_name_the_bucket_are_found(fleet: Fleet) -> None:
    own, foreign = fleet.instances
    tag(own)
    tag(foreign, bucket="another")
    found = running_instances(client("ec2"), BUCKET)
    assert [*found] == [own]
    assert found[own].tzinfo is not None


def test_node_without_record_is_ended_and_a_verified_one_is_not(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RECORDS_BUCKET", BUCKET)
    monkeypatch.setattr(eks_node_guard, "LONGEST_VERIFICATION", timedelta())
    monkeypatch.setattr(node_store, "_MAX_RECORDS", 1)
    monkeypatch.setattr(boto3, "client", client)
    silent, verified = fleet.instances
    tag(silent, verified)
    fleet.verify(verified, connected=False)
    fleet.verify("i-0123456789abcdef0", connected=False)
    handle({}, None)
    assert sizes() == (1, {verified})
    assert "no record after two hours" in capsys.readouterr().out


def test_refused_node_is_named_and_the_others_are_ended(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = fleet.instances

    def terminate(**parameters: Any) -> Any:
        if parameters["InstanceId"] == first:
            error = {"Code": "ValidationError", "Message": AT_MINIMUM}
            raise ClientError({"Error": error}, "TerminateInstanceInAutoScalingGroup")
        return client("autoscaling").terminate_instance_in_auto_scaling_group(**parameters)

    autoscaling = PartialClient(client("autoscaling"), terminate_instance_in_auto_scaling_group=terminate)
    with pytest.raises(NotEndedError, match=f"still run and are billed: {first}$"):
        end_nodes(autoscaling, {first: "core 3", second: "core 4"})
    assert sizes() == (1, {first})
    refused, ended = capsys.readouterr().out.splitlines()
    assert AT_MINIMUM in refused
    assert second in ended


@pytest.mark.parametrize("state", ["Terminating:Wait", "Terminating", "Detaching", "Standby"])
def test_node_outside_the_desired_size_does_not_lower_it(fleet: Fleet, state: str) -> None:
    node, _ = fleet.instances
    described = {"AutoScalingInstances": [{"InstanceId": node, "LifecycleState": state}]}
    end_nodes(PartialClient(client("autoscaling"), describe_auto_scaling_instances=described), {node: "core 3"})
    assert sizes() == (2, set(fleet.instances))

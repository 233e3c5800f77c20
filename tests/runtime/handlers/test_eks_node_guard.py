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
from trainium_runtime.handlers import eks_node_guard
from trainium_runtime.handlers.eks_node_guard import NotEndedError, end_nodes, handle, nodes_to_end, running_instances
from trainium_wire.node_record import NodeRecord, State, StoredRecord, stored_record

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
AT_MINIMUM = "Currently, desiredSize equals minSize (0)."


def stored(state: State, minutes: int, *, verified: tuple[str, ...] = (), name: str = "i-1") -> StoredRecord:
    record = NodeRecord(instance_id=name, state=state, reason="core 3", time="2026-11-24T12:00:00Z", verified=verified)
    return stored_record(name, record.to_json(), NOW - timedelta(minutes=minutes))


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
        pytest.param(None, False, id="no-record"),
    ],
)
def test_node_is_ended_only_long_after_its_failed_verification(record: StoredRecord | None, is_ended: bool) -> None:
    assert nodes_to_end(["i-1"], {"i-1": record} if record else {}, NOW) == (["i-1"] if is_ended else [])


def test_record_of_another_instance_ends_no_node() -> None:
    foreign = NodeRecord(instance_id="i-2", state="failed", reason="core 3", time="2026-11-24T12:00:00Z")
    record = stored_record("i-1", foreign.to_json(), NOW - timedelta(days=1))
    assert nodes_to_end(["i-1"], {"i-1": record, "i-2": stored("failed", 60, name="i-2")}, NOW) == []


NAMES = [f"i-{number}" for number in range(6)]
RECORDS = st.dictionaries(
    st.sampled_from(NAMES), st.builds(stored, st.sampled_from(["verified", "failed", "draining"]), st.integers(0, 90))
)


@given(st.sets(st.sampled_from(NAMES)), RECORDS)
def test_ended_nodes_are_running_and_failed(running: set[str], records: Mapping[str, StoredRecord]) -> None:
    ended = nodes_to_end(running, records, NOW)
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
    assert running_instances(client("ec2"), BUCKET) == [own]


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

"""The guard of a compute node group, with a store and clients in memory.

moto does not support AWS PCS, so botocore's model validates the calls.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
from botocore.validate import ParamValidator
from hypothesis import given
from hypothesis import strategies as st

from trainium_runtime.handlers.node_group_guard import FailureLimit, failed_nodes
from trainium_wire.node_record import NodeRecord, State, StoredRecord

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
SETTINGS = {
    "CLUSTER": "trn-pilot",
    "CLUSTER_ID": "pcs_cluster1",
    "GROUP_ID": "pcs_group1",
    "FAILURES": "2",
    "NODES": "4",
    "MIN_NODES": "1",
    "TOPIC": "arn:aws:sns:us-west-2:123456789012:notices",
}
_MODEL: Any = boto3.client("pcs", "us-west-2").meta.service_model


class Store:
    def __init__(self, records: Mapping[str, StoredRecord]) -> None:
        self._records = records

    def records(self) -> Mapping[str, StoredRecord]:
        return self._records

    def record_instance(self, key: str) -> str | None:
        return key.removeprefix("nodes/").removesuffix(".json")


class Aws:
    def __init__(self, instances: list[dict[str, Any]], *, maximum: int = 4) -> None:
        self.instances, self.bounds = instances, {"minInstanceCount": 1, "maxInstanceCount": maximum}
        self.updates: list[dict[str, int]] = []
        self.notices: list[str] = []

    def get_paginator(self, _name: str) -> "Aws":
        return self

    def paginate(self, **_filters: Any) -> list[Any]:
        return [{"Reservations": [{"Instances": self.instances}]}]

    def get_compute_node_group(self, **parameters: Any) -> Any:
        _validate("GetComputeNodeGroup", parameters)
        return {"computeNodeGroup": {"scalingConfiguration": self.bounds}}

    def update_compute_node_group(self, **parameters: Any) -> None:
        _validate("UpdateComputeNodeGroup", parameters)
        self.bounds = parameters["scalingConfiguration"]
        self.updates.append(self.bounds)

    def publish(self, **parameters: Any) -> None:
        self.notices.append(parameters["Message"])


def _validate(operation: str, parameters: dict[str, Any]) -> None:
    validator: Any = ParamValidator()
    report = validator.validate(parameters, _MODEL.operation_model(operation).input_shape)
    assert not report.has_errors(), report.generate_report()


def record(node: str, state: State, *, hours_ago: float = 0) -> StoredRecord:
    made = NodeRecord(instance_id=node, state=state, time="", reason="no device" if state == "failed" else "")
    return StoredRecord(record=made, written=NOW - timedelta(hours=hours_ago))


def instance(node: str, state: str = "running", *, reason: str = "") -> dict[str, Any]:
    return {
        "InstanceId": node,
        "State": {"Name": state},
        "LaunchTime": NOW - timedelta(minutes=20),
        "StateReason": {"Code": reason},
    }


def check(aws: Aws, records: Mapping[str, StoredRecord], event: Mapping[str, Any]) -> None:
    clients: Any = aws
    store: Any = Store(records)
    FailureLimit(SETTINGS, store=store, ec2=clients, pcs=clients, sns=clients).check(event, now=NOW)


def record_event(node: str) -> dict[str, Any]:
    return {"detail": {"object": {"key": f"nodes/{node}.json"}}}


def termination_event(node: str) -> dict[str, Any]:
    return {"detail": {"instance-id": node, "state": "terminated"}}


def failures(count: int, *, hours_ago: float = 1) -> dict[str, StoredRecord]:
    return {f"i-{number}": record(f"i-{number}", "failed", hours_ago=hours_ago) for number in range(count)}


def test_failures_within_the_limit_change_nothing() -> None:
    aws = Aws([])
    check(aws, failures(2), record_event("i-1"))
    assert (aws.updates, aws.notices) == ([], [])


def test_failures_beyond_the_limit_lower_the_maximum_to_verified_nodes() -> None:
    aws = Aws([instance("i-good"), instance("i-booting"), instance("i-gone", "terminated")])
    verified = {node: record(node, "verified") for node in ("i-good", "i-gone")}
    check(aws, {**failures(3), **verified}, record_event("i-2"))
    assert aws.updates == [{"minInstanceCount": 1, "maxInstanceCount": 1}]
    (notice,) = aws.notices
    assert "i-2, because: no device." in notice
    assert "--cluster-identifier pcs_cluster1 --compute-node-group-identifier pcs_group1" in notice
    assert "minInstanceCount=1,maxInstanceCount=4" in notice


def test_group_without_verified_nodes_launches_none() -> None:
    aws = Aws([])
    check(aws, failures(3), record_event("i-0"))
    assert aws.updates == [{"minInstanceCount": 0, "maxInstanceCount": 0}]


def test_failures_of_the_day_before_do_not_count() -> None:
    aws = Aws([])
    check(aws, {**failures(5, hours_ago=25), "i-new": record("i-new", "failed")}, record_event("i-new"))
    assert aws.updates == []


def test_lowered_maximum_is_lowered_once() -> None:
    aws = Aws([])
    for _ in range(2):
        check(aws, failures(3), record_event("i-0"))
    assert len(aws.updates) == len(aws.notices) == 1


def test_termination_of_a_verified_node_changes_nothing() -> None:
    aws = Aws([instance("i-good", "terminated")])
    check(aws, {**failures(3), "i-good": record("i-good", "verified")}, termination_event("i-good"))
    assert aws.updates == []


def test_node_of_another_group_changes_nothing() -> None:
    aws = Aws([])
    check(aws, failures(3), termination_event("i-another"))
    assert aws.updates == []


def test_node_terminated_without_a_record_counts_as_failed() -> None:
    aws = Aws([instance("i-silent", "terminated")])
    check(aws, failures(2), termination_event("i-silent"))
    assert aws.updates == [{"minInstanceCount": 0, "maxInstanceCount": 0}]
    assert "i-silent, because: it was terminated without a record" in aws.notices[0]


def test_reclaimed_node_has_not_failed() -> None:
    reclaimed = instance("i-1", "terminated", reason="Server.SpotInstanceTermination")
    assert failed_nodes({"i-1": reclaimed}, {}) == {}


@given(
    states=st.lists(st.sampled_from(["verified", "failed", "draining", None]), max_size=8),
    ends=st.lists(st.booleans(), min_size=8, max_size=8),
    maximum=st.integers(0, 8),
)
def test_maximum_is_only_lowered_to_the_verified_nodes(
    states: list[State | None], ends: list[bool], maximum: int
) -> None:
    names = [f"i-{number}" for number in range(len(states))]
    instances = [instance(name, "terminated" if end else "running") for name, end in zip(names, ends, strict=False)]
    records = {name: record(name, state) for name, state in zip(names, states, strict=True) if state}
    aws = Aws(instances, maximum=maximum)
    for name in names:
        check(aws, records, record_event(name))
    verified = sum(not end and state in ("verified", "draining") for state, end in zip(states, ends, strict=False))
    assert aws.updates in ([], [{"minInstanceCount": min(1, verified), "maxInstanceCount": verified}])
    assert not aws.updates or verified < maximum

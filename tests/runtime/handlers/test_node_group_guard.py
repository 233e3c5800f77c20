"""The guard of a compute node group, with a store and clients in memory.

moto does not support AWS PCS, so botocore's model validates the calls.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.validate import ParamValidator
from hypothesis import given
from hypothesis import strategies as st

from trainium_runtime.handlers.node_group_guard import FailureLimit, failed_nodes
from trainium_wire.node_record import NodeRecord, State, StoredRecord, stored_record

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
SETTINGS = {
    "CLUSTER": "trn-pilot",
    "CLUSTER_ID": "pcs_cluster1",
    "GROUP_ID": "pcs_group1",
    "GROUP_NAME": "nodes",
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
        self.refusal = ""

    def get_paginator(self, _name: str) -> "Aws":
        return self

    def paginate(self, **_filters: Any) -> list[Any]:
        return [{"Reservations": [{"Instances": self.instances}]}]

    def get_compute_node_group(self, **parameters: Any) -> Any:
        _validate("GetComputeNodeGroup", parameters)
        return {"computeNodeGroup": {"scalingConfiguration": self.bounds}}

    def update_compute_node_group(self, **parameters: Any) -> None:
        _validate("UpdateComputeNodeGroup", parameters)
        if self.refusal:
            raise ClientError({"Error": {"Code": self.refusal, "Message": "no"}}, "UpdateComputeNodeGroup")
        self.bounds = parameters["scalingConfiguration"]
        self.updates.append(self.bounds)

    def publish(self, **parameters: Any) -> None:
        self.notices.append(parameters["Message"])


def _validate(operation: str, parameters: dict[str, Any]) -> None:
    validator: Any = ParamValidator()
    report = validator.validate(parameters, _MODEL.operation_model(operation).input_shape)
    assert not report.has_errors(), report.generate_report()


def record(
    node: str, state: State, *, hours_ago: float = 0, slurm_node: str = "", verified: tuple[str, ...] = ()
) -> StoredRecord:
    reason = "no device" if state == "failed" else ""
    made = NodeRecord(instance_id=node, state=state, time="", reason=reason, slurm_node=slurm_node, verified=verified)
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
    verified = {
        "i-good": record("i-good", "verified", slurm_node="nodes-1"),
        "i-gone": record("i-gone", "verified", slurm_node="nodes-3"),
    }
    check(aws, {**failures(3), **verified}, record_event("i-2"))
    assert aws.updates == [{"minInstanceCount": 1, "maxInstanceCount": 1}]
    (notice,) = aws.notices
    assert "i-2, because: no device." in notice
    assert "is now 1, the number of nodes that may run jobs" in notice
    assert "--cluster-identifier pcs_cluster1 --compute-node-group-identifier pcs_group1" in notice
    assert "minInstanceCount=1,maxInstanceCount=4" in notice


def test_maximum_keeps_the_highest_verified_node_and_the_notice_lists_the_others() -> None:
    aws = Aws([instance("i-good"), instance("i-drain")])
    verified = {
        "i-good": record("i-good", "verified", slurm_node="nodes-3"),
        "i-drain": record("i-drain", "draining", slurm_node="nodes-1"),
    }
    check(aws, {**failures(3), **verified}, record_event("i-2"))
    assert aws.updates == [{"minInstanceCount": 1, "maxInstanceCount": 3}]
    assert "is now 3: with a lower one, AWS PCS would terminate nodes that may run jobs" in aws.notices[0]
    assert "scontrol update NodeName=nodes-[2] State=DOWN" in aws.notices[0]


@pytest.mark.parametrize("slurm_node", ["nodes-4", "", "ip-10-0-0-1.ec2.internal"])
def test_maximum_stays_if_a_lower_one_could_remove_a_verified_node(slurm_node: str) -> None:
    aws = Aws([instance("i-good")])
    check(aws, {**failures(3), "i-good": record("i-good", "verified", slurm_node=slurm_node)}, record_event("i-2"))
    assert aws.updates == []
    assert "stays 4: with a lower one" in aws.notices[0]
    assert ("NodeName=nodes-[1,2,3] " in aws.notices[0]) == (slurm_node == "nodes-4")


def test_node_that_failed_after_its_verification_is_kept_with_its_job() -> None:
    aws = Aws([instance("i-0")])
    failed = record("i-0", "failed", slurm_node="nodes-3", verified=("verified", ""))
    check(aws, {**failures(3), "i-0": failed}, record_event("i-0"))
    assert aws.updates == [{"minInstanceCount": 1, "maxInstanceCount": 3}]


def test_node_with_an_invalid_record_is_kept() -> None:
    aws = Aws([instance("i-0")])
    check(aws, {**failures(3), "i-0": stored_record("i-0", "no JSON", NOW)}, record_event("i-0"))
    assert aws.updates == []
    assert "stays 4: with a lower one" in aws.notices[0]


def test_termination_of_a_node_that_reported_its_failure_repeats_no_notice() -> None:
    aws = Aws([instance("i-good"), instance("i-2", "terminated")])
    records = {**failures(3), "i-good": record("i-good", "verified", slurm_node="nodes-4")}
    check(aws, records, record_event("i-2"))
    check(aws, records, termination_event("i-2"))
    assert len(aws.notices) == 1


def test_refused_update_is_said_once_and_repeated_at_the_next_failure() -> None:
    aws = Aws([instance("i-good"), instance("i-2", "terminated")])
    records = {**failures(3), "i-good": record("i-good", "verified", slurm_node="nodes-2")}
    aws.refusal = "ConflictException"
    check(aws, records, record_event("i-2"))
    check(aws, records, termination_event("i-2"))
    (notice,) = aws.notices
    assert "stays 4: AWS PCS refused a lower one, because another change of the group has not ended." in notice
    assert "NodeName=nodes-[1,3,4] State=DOWN" in notice
    aws.refusal = ""
    check(aws, records, termination_event("i-2"))
    assert aws.updates == [{"minInstanceCount": 1, "maxInstanceCount": 2}]
    assert "is now 2: with a lower one" in aws.notices[1]


def test_refused_update_without_kept_nodes_names_all_nodes() -> None:
    aws = Aws([])
    aws.refusal = "ConflictException"
    check(aws, failures(3), record_event("i-2"))
    assert "NodeName=nodes-[1,2,3,4] State=DOWN" in aws.notices[0]


def test_update_that_fails_for_another_reason_raises() -> None:
    aws = Aws([])
    aws.refusal = "AccessDeniedException"
    with pytest.raises(ClientError, match="AccessDenied"):
        check(aws, failures(3), record_event("i-2"))
    assert aws.notices == []
    assert "ConflictException" in [
        shape.name for shape in _MODEL.operation_model("UpdateComputeNodeGroup").error_shapes
    ]


def test_group_with_only_verified_nodes_needs_no_notice() -> None:
    aws = Aws([instance(f"i-good{number}") for number in range(1, 5)])
    verified = {f"i-good{n}": record(f"i-good{n}", "verified", slurm_node=f"nodes-{n}") for n in range(1, 5)}
    check(aws, {**failures(3), **verified}, record_event("i-2"))
    assert (aws.updates, aws.notices) == ([], [])


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


class PcsStandIn(Aws):
    """A group as the AWS PCS User Guide describes it ("Updating an AWS PCS compute node group").

    A maximum of n leaves the Slurm nodes 1 to n. If it is lowered, the instances of the other nodes are terminated.
    """

    def __init__(self, nodes: int) -> None:
        super().__init__([], maximum=nodes)
        self.records: dict[str, StoredRecord] = {}
        self.current: dict[int, str] = {}
        self.joined: set[str] = set()
        self.lost: list[str] = []
        self.launched = 0

    def update_compute_node_group(self, **parameters: Any) -> None:
        super().update_compute_node_group(**parameters)
        assert self.bounds["minInstanceCount"] <= self.bounds["maxInstanceCount"]
        for number in sorted(self.current):
            if number > self.bounds["maxInstanceCount"]:
                name = self.terminate(number)
                if name in self.joined:
                    self.lost.append(name)

    def launch(self, number: int) -> None:
        if number not in self.current and number <= self.bounds["maxInstanceCount"]:
            self.launched += 1
            self.current[number] = f"i-{self.launched}"
            self.instances.append(instance(self.current[number]))

    def report(self, number: int, state: State) -> dict[str, Any] | None:
        """Write the record of a node. A verified node runs jobs from then on. Returns the event of the record."""
        if (name := self.current.get(number)) is None:
            return None
        before = ("verified", "") if name in self.joined and state != "verified" else ()
        self.records[name] = record(name, state, slurm_node=f"nodes-{number}", verified=before)
        if state != "failed":
            self.joined.add(name)
        return record_event(name)

    def terminate(self, number: int) -> str | None:
        name = self.current.pop(number, None)
        for entry in self.instances:
            if entry["InstanceId"] == name:
                entry["State"] = {"Name": "terminated"}
        return name


NODES = 5
STEPS = st.tuples(st.sampled_from(["launch", "verified", "draining", "failed", "lost"]), st.integers(1, NODES))
"""A node that has failed its verification is terminated. One that fails later stays, because it may run a job."""


def play(group: PcsStandIn, steps: Iterable[tuple[Any, int]]) -> None:
    """Let nodes boot, report, and be terminated if they failed or were lost. The guard receives each event."""
    for kind, number in steps:
        group.launch(number)
        if kind in ("verified", "draining", "failed") and (event := group.report(number, kind)):
            check(group, group.records, event)
        ends = kind == "lost" or (kind == "failed" and group.current.get(number) not in group.joined)
        if ends and (name := group.terminate(number)):
            check(group, group.records, termination_event(name))


@given(steps=st.lists(STEPS, min_size=4, max_size=40))
def test_no_sequence_of_failures_terminates_a_node_that_may_run_a_job(steps: list[tuple[str, int]]) -> None:
    group = PcsStandIn(NODES)
    play(group, steps)
    assert group.lost == []


@given(verified=st.sets(st.integers(1, NODES)))
def test_failures_beyond_the_limit_end_launches_above_the_highest_verified_node(verified: set[int]) -> None:
    group = PcsStandIn(NODES)
    play(group, [("verified", number) for number in verified])
    others = [number for number in range(1, NODES + 1) if number not in verified]
    play(group, [("failed", number) for number in others * 4])
    assert group.bounds["maxInstanceCount"] == (max(verified, default=0) if others else NODES)
    assert bool(group.notices) == bool(others)

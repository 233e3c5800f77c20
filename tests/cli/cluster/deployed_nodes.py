"""Nodes of a deployed cluster, as AwsNodes reads them: verified, booting, and one failed."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

from trainium_core.nodes.report import DeployedNodes, NodeInstance, NodesReport, nodes_report
from trainium_wire.membership import Membership
from trainium_wire.node_record import CheckRecord, NodeRecord, State, StoredRecord

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
A, B = "i-0aaaaaaaaaaaaaaaa", "i-0bbbbbbbbbbbbbbbb"
MEMBERSHIP = Membership.of({A: "10.42.0.4", B: "10.42.0.12"})
DEVICES = CheckRecord(name="neuron-devices", expected="16", found="15 (missing: device 7)", ok=False)


def instance(instance_id: str) -> NodeInstance:
    return NodeInstance(
        instance_id=instance_id, zone="usw2-az4", address="10.42.0.4", state="running", launched=NOON, leaving=False
    )


def stored(instance_id: str, state: State = "verified", reason: str = "", *checks: CheckRecord) -> StoredRecord:
    record = NodeRecord(
        instance_id=instance_id, state=state, reason=reason, checks=checks, membership=MEMBERSHIP.version, time="now"
    )
    return StoredRecord(record=record, written=NOON)


def deployed(*records: StoredRecord) -> DeployedNodes:
    return DeployedNodes(
        wanted=2,
        instances=(instance(A), instance(B)),
        records={one.record.instance_id: one for one in records},
        membership=MEMBERSHIP,
    )


VERIFIED = deployed(stored(A), stored(B))
BOOTING = deployed(stored(A))
OUTSIDE = nodes_report(VERIFIED, replacements=0)
"""The nodes of an engine whose stack has none."""
LOST = deployed(stored(A), stored(B, "failed", "15 of 16 Neuron devices (missing: device 7)", DEVICES))


@dataclass
class FakeNodes:
    """Returns its answers one after the other, and repeats the last one."""

    answers: list[DeployedNodes | Exception | None]
    requests: list[str] = field(default_factory=list[str])
    outside: NodesReport | None = None

    def nodes(self, stack: str, **_: object) -> DeployedNodes | None:
        self.requests.append(stack)
        answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def outside_nodes(self, _stack: str) -> NodesReport | None:
        return self.outside

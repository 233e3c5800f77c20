"""Why a cluster has no nodes, and the next step."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.core.aws_stubs import stack_record
from tests.core.test_clusters import FakeClusters, clusters, stack
from trainium_core.aws.capacity import INSTANCE_PLATFORM, Reservation
from trainium_core.clusters.absence import ScalingGroup, absence, with_absences
from trainium_core.clusters.cluster import ClusterStack, clusters_in
from trainium_runtime.errors import UnavailableError
from trainium_runtime.pilot_clock import Memory, PilotTerms, SpentBudget, clock_decision
from trainium_runtime.pilot_end import Deadline
from trainium_wire.stack_record import StackRecord

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
FLEET = stack_record(cluster="trn", topic_arn="topic")
OF_JOBS = replace(FLEET, engine="pcs", group=None)
NOT_LAUNCHED = ScalingGroup(desired=2)
IN_A_BLOCK = replace(FLEET, settings={"capacity": "capacity-block", "reservation_id": "cr-1"})
BLOCK = Reservation(
    reservation_id="cr-1",
    capacity="capacity-block",
    state="scheduled",
    instance_type="trn1.32xlarge",
    platform=INSTANCE_PLATFORM,
    tenancy="default",
    zone_id="usw2-az4",
    total=2,
    available=0,
    start=NOW + timedelta(hours=2),
    end=NOW + timedelta(hours=26),
)


@dataclass
class FakeAccount:
    """An account whose answers a test defines.

    Attributes:
        tag: The recorded reason of the controller.
        node_group: None before the group is created.
        deployed: The record of the nodes.
        block: The reservation of the nodes.
        unavailable: The error of `fleet`; empty if it answers.
    """

    tag: str | None = None
    node_group: ScalingGroup | None = NOT_LAUNCHED
    deployed: StackRecord | None = FLEET
    block: Reservation | None = None
    unavailable: str = ""

    def fleet(self, stack: ClusterStack) -> StackRecord | None:  # noqa: ARG002
        if self.unavailable:
            raise UnavailableError(self.unavailable)
        return self.deployed

    def stop_reason(self, topic_arn: str) -> str | None:
        return self.tag if topic_arn == "topic" else None

    def group(self, name: str) -> ScalingGroup | None:
        return self.node_group if name == "group" else None

    def reservation(self, reservation_id: str) -> Reservation | None:
        return self.block if reservation_id == "cr-1" else None


def sentence_of(account: FakeAccount, **known: object) -> str:
    found = clusters(stack(**{"has_nodes": True, **known}))["trn"]
    return str(absence(found, account, NOW))


@pytest.mark.parametrize(
    ("account", "known", "why", "remedy"),
    [
        (FakeAccount(), {"asleep": True}, "put to sleep", "`trn wake`"),
        (FakeAccount(deployed=OF_JOBS), {}, "no job needs nodes", "`trn run`"),
        (FakeAccount(), {"ends": NOW - timedelta(hours=1)}, "the pilot ended at 2026-11-23T11:00Z", "`trn extend 8h`"),
        (
            FakeAccount(tag="capacity block", deployed=IN_A_BLOCK, block=BLOCK),
            {},
            "cr-1 begins at 2026-11-23T14:00Z",
            "the nodes launch then",
        ),
        (
            FakeAccount(deployed=IN_A_BLOCK, block=replace(BLOCK, state="expired", start=NOW, end=NOW)),
            {},
            "the state of cr-1 is expired",
            "`trn capacity`",
        ),
        (
            FakeAccount(deployed=IN_A_BLOCK, block=replace(BLOCK, state="payment-failed")),
            {},
            "the state of cr-1 is payment-failed",
            "`trn capacity`",
        ),
        (
            FakeAccount(deployed=IN_A_BLOCK, block=replace(BLOCK, state="active", start=NOW, end=NOW)),
            {},
            "cr-1 ended at 2026-11-23T12:00Z",
            "`trn capacity`",
        ),
        (
            FakeAccount(
                tag="capacity block",
                node_group=ScalingGroup(desired=0),
                deployed=IN_A_BLOCK,
                block=replace(BLOCK, state="active", start=NOW, end=NOW + timedelta(minutes=20)),
            ),
            {},
            "cr-1 ends at 2026-11-23T12:20Z, and its nodes stop before",
            "`trn capacity`",
        ),
        (
            FakeAccount(node_group=ScalingGroup(desired=2, error="InsufficientInstanceCapacity: none in usw2-az4")),
            {"status": "CREATE_IN_PROGRESS"},
            "the last launch failed (insufficient capacity)",
            "`trn capacity`",
        ),
        (
            FakeAccount(node_group=ScalingGroup(desired=2, error="VcpuLimitExceeded")),
            {},
            "quota",
            "`trn quota request`",
        ),
    ],
)
def test_reason_and_next_step_are_named(account: FakeAccount, known: dict[str, object], why: str, remedy: str) -> None:
    sentence = sentence_of(account, **known)
    assert why in sentence
    assert remedy in sentence


@pytest.mark.parametrize(
    ("terms", "memory", "sentence"),
    [
        (
            PilotTerms(nodes=2, ends=Deadline.from_text("47h")),
            Memory(),
            "the pilot ended at 2026-11-23T11:00Z; `trn extend 8h` sets a later end",
        ),
        (
            PilotTerms(nodes=2, budget_usd=500),
            Memory(spent=SpentBudget(usd=500, since=NOW - timedelta(days=1))),
            "its budget of $500 is spent; raise trn:budget_usd, and run `trn deploy`",
        ),
        (
            PilotTerms(nodes=2, idle=timedelta(hours=1)),
            Memory(),
            "not used since 2026-11-23T10:00Z; `trn wake` restores them",
        ),
    ],
)
def test_reason_stored_by_the_clock_is_read(terms: PilotTerms, memory: Memory, sentence: str) -> None:
    decided = clock_decision(
        now=NOW,
        terms=terms,
        deployed=NOW - timedelta(days=2) + timedelta(seconds=33),
        block=None,
        asleep=False,
        memory=memory,
        idle_since=NOW - timedelta(hours=2),
    )
    assert sentence_of(FakeAccount(tag=str(decided.stopped))) == sentence


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("trn-TrnClusterStack", "its stack is in ROLLBACK_COMPLETE; `trn nodes` shows what failed"),
        ("Web", "its stack is in ROLLBACK_COMPLETE; `trn nodes` shows what failed"),
        ("trn-SageMakerTrainingStack", "None"),
    ],
)
def test_stack_of_a_failed_first_deployment_lacks_nodes_unless_its_engine_has_none(name: str, sentence: str) -> None:
    account = FakeAccount(deployed=None)
    failed = {"name": name, "status": "ROLLBACK_COMPLETE", "has_nodes": False, "has_record": False}
    assert sentence_of(account, **failed) == sentence


def test_unreadable_reason_is_named() -> None:
    account = FakeClusters(stacks=[stack(has_nodes=True)])
    found = clusters_in("us-west-2", account, prices={})
    answered = with_absences(found, FakeAccount(unavailable="the permission is missing"), NOW)
    assert answered.not_read == ("why trn has no nodes: the permission is missing",)
    assert dict(with_absences(found, FakeAccount(), NOW).absences)["trn"].why == "no node has been launched yet"

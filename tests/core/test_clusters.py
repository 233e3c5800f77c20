"""The summary of each cluster of an account: stacks, nodes, state, hourly price."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import pytest
from moto import mock_aws

from tests.core.aws_stubs import REGION, create_stack, put_record, stack_record
from trainium_core.aws.capacity import AwsCapacity
from trainium_core.aws.identity import Identity
from trainium_core.clusters.aws_account import AwsClustersAccount
from trainium_core.clusters.cluster import Cluster, ClusterNode, ClusterStack, ClusterStacks, clusters_in
from trainium_core.prices.price import CAPACITY_BLOCK, ON_DEMAND, Price, PricedItem
from trainium_runtime.errors import UnavailableError


def stack(cluster: str = "trn", **known: object) -> ClusterStack:
    values: dict[str, object] = {"name": "TrnClusterStack", "status": "CREATE_COMPLETE", "engine": "cluster", **known}
    return ClusterStack(cluster=cluster, **values)  # pyright: ignore[reportArgumentType]


def node(number: int, cluster: str = "trn", product: str = ON_DEMAND, state: str = "running") -> ClusterNode:
    return ClusterNode(
        instance_id=f"i-{number}", cluster=cluster, instance_type="trn1.32xlarge", state=state, product=product
    )


@dataclass
class FakeClusters:
    """An account without AWS prices, so that those of the snapshot count."""

    stacks: Sequence[ClusterStack] = ()
    nodes: Sequence[ClusterNode] = ()
    not_read: list[str] = field(default_factory=list[str])

    def identity(self) -> Identity:
        return Identity(account="123456789012", arn="arn:aws:iam::123456789012:user/someone")

    def cluster_stacks(self) -> ClusterStacks:
        return ClusterStacks(stacks=self.stacks, not_read=self.not_read)

    def cluster_nodes(self) -> Sequence[ClusterNode]:
        return self.nodes

    def enabled_regions(self) -> Sequence[str]:
        return ("us-west-2",)

    def price(self, item: PricedItem) -> Price:
        raise UnavailableError(f"no price of {item.product}")


def clusters(*known: ClusterStack | ClusterNode) -> dict[str, Cluster]:
    account = FakeClusters(
        stacks=[item for item in known if isinstance(item, ClusterStack)],
        nodes=[item for item in known if isinstance(item, ClusterNode)],
    )
    return {cluster.name: cluster for cluster in clusters_in("us-west-2", account, prices={}).clusters}


def test_clusters_with_a_common_name_prefix_are_distinguished() -> None:
    found = clusters(stack("trn"), stack("trn-pilot", name="trn-pilot-TrnClusterStack"), node(1, "trn-pilot"))
    assert [(name, len(cluster.stacks), len(cluster.nodes)) for name, cluster in found.items()] == [
        ("trn", 1, 0),
        ("trn-pilot", 1, 1),
    ]


@pytest.mark.parametrize(
    ("known", "state"),
    [
        ([stack(), node(1)], "running"),
        ([stack(asleep=True)], "asleep"),
        ([stack(asleep=False)], "no nodes"),
        ([stack(status="UPDATE_ROLLBACK_FAILED"), node(1)], "UPDATE_ROLLBACK_FAILED"),
        ([node(1)], "no stack"),
    ],
)
def test_state_shows_what_needs_attention_first(known: list[ClusterStack | ClusterNode], state: str) -> None:
    assert clusters(*known)["trn"].state == state


def test_hourly_price_is_that_of_billed_nodes() -> None:
    nodes = [node(1), node(2), node(3, state="stopped"), node(4, product=CAPACITY_BLOCK)]
    assert clusters(stack(), *nodes)["trn"].per_hour.usd == 2 * Decimal("21.5")


def test_missing_price_is_unknown_and_not_zero() -> None:
    unsold = ClusterNode(instance_id="i-9", cluster="trn", instance_type="trn9", state="running", product=ON_DEMAND)
    assert str(clusters(stack(), unsold)["trn"].per_hour) == "unknown, 1 amount unknown"


@pytest.mark.parametrize("ends", ["whenever", "8h"])
@mock_aws
def test_stack_whose_end_cannot_be_read_is_listed(monkeypatch: pytest.MonkeyPatch, ends: str) -> None:
    def refuse(_self: AwsCapacity, reservation_id: str) -> None:
        raise UnavailableError(f"not allowed to read {reservation_id}")

    monkeypatch.setattr(AwsCapacity, "reservation", refuse)
    create_stack("TrnClusterStack", {})
    settings = {"ends": ends, "capacity": "capacity-block", "reservation_id": "cr-1"}
    put_record(stack_record(cluster="trn", settings=settings))
    found = AwsClustersAccount(REGION).cluster_stacks()
    assert [(each.name, each.has_nodes, each.ends) for each in found.stacks] == [("TrnClusterStack", True, None)]
    assert any("the end of trn in the stack TrnClusterStack" in text for text in found.not_read)

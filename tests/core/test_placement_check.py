"""Whether the placement group of a plan exists, is a cluster placement group, and is available."""

import pytest

from tests.core.aws_stubs import stubbed
from tests.core.fake_account import FakeAccount
from tests.core.findings import finding_of
from trainium_core.aws.network import PlacementGroup
from trainium_core.preflight.finding import Finding

NEW_ONE = "set trn:placement_group to another, or remove it"


def group(*, strategy: str = "cluster", state: str = "available") -> PlacementGroup:
    return PlacementGroup(name="ours", strategy=strategy, state=state)


def own(there: PlacementGroup | None) -> Finding:
    return finding_of("placement", FakeAccount(group=there), placement_group="ours")


@pytest.mark.parametrize(
    ("there", "says", "fix"),
    [
        (None, "no placement group ours in us-west-2", NEW_ONE),
        (group(strategy="spread"), "ours is a spread placement group", NEW_ONE),
        (group(state="deleting"), "ours is deleting", NEW_ONE),
        (group(state="pending"), "ours is pending", "wait until it is available"),
    ],
)
def test_group_that_cannot_hold_the_nodes_fails(there: PlacementGroup | None, says: str, fix: str) -> None:
    finding = own(there)
    assert (finding.outcome, finding.found, finding.fix) == ("fail", says, fix)


def test_group_unknown_to_ec2_does_not_exist() -> None:
    account, stub = stubbed("ec2")
    stub.add_client_error("describe_placement_groups", "InvalidPlacementGroup.Unknown")
    assert account.network.placement_group("ours") is None

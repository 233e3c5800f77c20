"""Two clusters in one account and region, where one name is a prefix of the other."""

import json
from collections.abc import Iterator

import pytest

from tests.constructs.synth import REGION, cluster_template
from tests.deploy.account import Account, differences
from tests.deploy.command import run_trn
from tools.demo.inventory import Inventory

OF_ONE_NODE = ("-c", f"trn:region={REGION}", "-c", "trn:instance_type=trn1.32xlarge", "-c", "trn:nodes=1")


@pytest.fixture
def beside(account: Account) -> Iterator[Inventory]:
    """The resources of the account with the default cluster, and without the other."""
    account.deploy(cluster_template(nodes=1, ends="5d"))
    yield account.inventory()
    account.destroy()


def test_one_of_two_clusters_is_listed_and_destroyed_alone(account: Account, beside: Inventory) -> None:
    account.deploy(cluster_template(nodes=1, cluster_name="trn"))

    listed = run_trn(account, "list", *OF_ONE_NODE, "--json")
    assert listed.code == 0, listed.printed
    by_name = {one["name"]: one for one in json.loads(listed.printed)["clusters"]}
    assert {name: [stack["name"] for stack in one["stacks"]] for name, one in by_name.items()} == {
        "trn": ["trn-TrnClusterStack"],
        "trn-pilot": ["TrnClusterStack"],
    }
    assert [(one["state"], len(one["nodes"]), one["usd_per_hour"]) for one in by_name.values()] == 2 * [
        ("running", 1, "21.5")
    ]
    assert (by_name["trn"]["ends"], by_name["trn-pilot"]["ends"] is None) == (None, False)

    destroyed = run_trn(account, "destroy", *OF_ONE_NODE, "-c", "trn:cluster_name=trn", "--yes", "--grace", "0")
    assert destroyed.code == 0, destroyed.printed
    assert differences(beside, account.inventory()) == []
    audited = run_trn(account, "audit", *OF_ONE_NODE, "-c", "trn:cluster_name=trn")
    assert audited.code == 0, audited.printed

"""An app of somebody else's, made with the wheel alone, deploys as ours does, and `trn` finds what it made."""

import json
from collections.abc import Iterator

import pytest

from demo.inventory import Inventory
from tests.constructs.synth import REGION, Template
from tests.deploy.account import Account, differences
from tests.deploy.command import run_trn
from tests.wheel.conftest import wheel_environment
from tests.wheel.environment import WheelEnvironment, synthesize_downstream_app

__all__ = ["wheel_environment"]

STACK = "Training"
REGION_OPTION = ("--region", REGION)


@pytest.fixture(scope="module")
def before(account: Account) -> Inventory:
    return account.inventory()


@pytest.fixture(scope="module")
def downstream(
    account: Account,
    before: Inventory,
    wheel_environment: WheelEnvironment,
) -> Iterator[Template]:
    template = Template(synthesize_downstream_app(wheel_environment) / f"{STACK}.template.json")
    account.cdk_deploy(template, STACK)
    yield template
    account.cdk_destroy(template, STACK)
    assert differences(before, account.inventory()) == []


def test_the_fleet_is_in_the_network_they_have(account: Account, downstream: Template) -> None:  # noqa: ARG001
    cluster = account.cluster(STACK)
    assert {node["VpcId"] for node in cluster.instances} == set(cluster.ids("AWS::EC2::VPC"))


def test_the_fleet_has_its_nodes_with_efa_on_every_card(account: Account, downstream: Template) -> None:  # noqa: ARG001
    nodes = account.cluster(STACK).instances
    assert [len([i for i in node["NetworkInterfaces"] if i["InterfaceType"] == "efa"]) for node in nodes] == [8, 8]


def test_their_own_bucket_is_there_beside_the_fleet(account: Account, downstream: Template) -> None:
    names = [one["LogicalResourceId"] for one in account.cluster(STACK).resources]
    assert set(downstream.resources("AWS::S3::Bucket")) <= set(names)
    assert any(name.startswith("Dataset") for name in names)


def test_it_is_listed_with_its_stack_and_its_dollars_by_the_hour(account: Account, downstream: Template) -> None:  # noqa: ARG001
    listed = run_trn(account, "list", *REGION_OPTION, "--json")
    (found,) = json.loads(listed.printed)["clusters"]
    assert (found["state"], len(found["nodes"]), float(found["usd_per_hour"])) == ("running", 2, 43.0)
    assert [stack["name"] for stack in found["stacks"]] == [STACK]


def test_without_its_stacks_name_its_nodes_are_shown_put_to_sleep_and_woken(
    account: Account,
    downstream: Template,  # noqa: ARG001
) -> None:
    assert "ready: 2 of 2 nodes proven" in run_trn(account, "nodes", *REGION_OPTION).printed
    slept = run_trn(account, "sleep", *REGION_OPTION, "--yes", "--grace", "0")
    assert (slept.code, account.cluster(STACK).instances) == (0, []), slept.printed
    woken = run_trn(account, "wake", *REGION_OPTION, "--yes")
    assert woken.code == 0, woken.printed
    assert "is awake: 2 of 2 nodes proven" in woken.printed


def test_what_it_has_besides_is_neither_audited_nor_destroyed_with_the_cluster(
    account: Account, downstream: Template
) -> None:
    audited = run_trn(account, "audit", *REGION_OPTION, "--json")
    shown = {one["name"] for one in json.loads(audited.printed)["resources"]}
    cluster = account.cluster(STACK)
    assert audited.code == 1
    assert set(cluster.ids("AWS::AutoScaling::AutoScalingGroup")) <= shown
    assert not set(cluster.ids("AWS::EC2::VPC")) & shown

    destroyed = run_trn(account, "destroy", *REGION_OPTION, "--yes", "--grace", "0")
    assert destroyed.code == 1
    assert "Training stays: it also has" in destroyed.printed
    now = account.cluster(STACK)
    assert (now.instances, len(now.resources)) == ([], len(cluster.resources))
    assert set(downstream.resources("AWS::S3::Bucket")) <= {one["LogicalResourceId"] for one in now.resources}

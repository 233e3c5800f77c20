"""An app of somebody else's, made with the wheel alone, deploys as ours does."""

from collections.abc import Iterator

import pytest

from demo.inventory import Inventory
from tests.constructs.synth import Template
from tests.deploy.account import Account, differences
from tests.wheel.conftest import wheel_environment
from tests.wheel.environment import WheelEnvironment, synthesize_downstream_app

__all__ = ["wheel_environment"]

STACK = "Training"


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

"""`trn deploy` replaces nodes, with exactly the permissions of `trn permissions`.

The fixtures run commands one after another in one account, and each test checks the result of one of them.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from stacks.trn_cluster_stack import TrnClusterStack
from tests.constructs.synth import cluster_template, template_of
from tests.deploy.account import Account, Run, instance_ids
from tests.deploy.command import run_trn
from tests.deploy.permitted import as_user, execution_policies
from trainium_core.naming import STACK_NAME
from trainium_core.plan import Plan
from trainium_local.server import Settings

PLAN: Mapping[str, Any] = {"instance_type": "trn1.32xlarge", "region": "us-west-2", "nodes": 2}
TAKEN = "/taken/already"
TAGGED: Mapping[str, Any] = {"tags": {"team": "ml"}}
LARGER = {**TAGGED, "root_volume_gib": 600}


class StackThatFails(TrnClusterStack):
    """A stack that fails: the parameter that it creates last already exists."""

    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan) -> None:
        super().__init__(scope, construct_id, plan=plan)
        refused = ssm.CfnParameter(self, "Refused", name=TAKEN, type="String", value="x")
        refused.node.add_dependency(self.node.find_child("Cluster"))


@dataclass(frozen=True, kw_only=True)
class Moment:
    """The result of a command, and the nodes right after it."""

    run: Run
    nodes: set[str]


def a_moment(account: Account, run: Run) -> Moment:
    return Moment(run=run, nodes=instance_ids(account.cluster()))


@pytest.fixture(scope="module")
def account(start_account: Callable[..., Account]) -> Account:
    started = start_account(Settings(iam="enforced"), execution_policies)
    started.aws.client("ssm").put_parameter(Name=TAKEN, Type="String", Value="theirs")
    return started


@pytest.fixture(scope="module")
def deployer(account: Account) -> Account:
    return as_user(account, "deploy")


@pytest.fixture(scope="module")
def app_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Mapping[str, Any]], Path]:
    """A function that makes a folder with the cdk.json of a plan with some settings, already synthesised."""

    def make(settings: Mapping[str, Any]) -> Path:
        template = template_of(TrnClusterStack, STACK_NAME, settings)
        folder = tmp_path_factory.mktemp("app")
        context = {f"trn:{name}": value for name, value in {**PLAN, **settings}.items()}
        (folder / "cdk.json").write_text(json.dumps({"app": str(template.file.parent), "context": context}))
        return folder

    return make


@pytest.fixture(scope="module")
def deployed(account: Account) -> set[str]:
    """The nodes of the first deployment."""
    account.deploy(cluster_template())
    return instance_ids(account.cluster())


@pytest.fixture(scope="module")
def tagged(account: Account, deployer: Account, deployed: set[str], app_of: Callable[..., Path]) -> Moment:  # noqa: ARG001
    """After `trn deploy --yes` with another tag."""
    app = app_of(TAGGED)
    return a_moment(account, run_trn(deployer, "deploy", "--yes", folder=app))


@pytest.fixture(scope="module")
def rolled_back(account: Account, deployer: Account, tagged: Moment) -> Moment:  # noqa: ARG001
    """After a deployment that replaced the nodes and then failed, once its rollback has restored nodes."""
    run = deployer.try_cdk_deploy(template_of(StackThatFails, STACK_NAME, LARGER))
    deadline = time.monotonic() + 480
    while not verified(account) and time.monotonic() < deadline:
        time.sleep(0.2)
    return a_moment(account, run)


def verified(account: Account) -> bool:
    cluster = account.cluster()
    records = {one.instance_id for one in cluster.records if one.state == "verified"}
    return len(nodes := instance_ids(cluster)) == 2 and nodes <= records


@pytest.fixture(scope="module")
def replaced(
    account: Account,
    deployer: Account,
    rolled_back: Moment,  # noqa: ARG001
    app_of: Callable[..., Path],
) -> Moment:
    """After `trn deploy --yes --replace-nodes` with larger disks."""
    app = app_of(LARGER)
    return a_moment(account, run_trn(deployer, "deploy", "--yes", "--replace-nodes", folder=app))


def test_changed_tag_terminates_no_node(deployed: set[str], tagged: Moment) -> None:
    assert tagged.run.code == 0, tagged.run.printed
    assert "This deployment does not terminate running nodes. Running: 2." in tagged.run.printed
    assert tagged.nodes == deployed


def test_cluster_has_new_nodes_after_a_rollback(deployed: set[str], rolled_back: Moment) -> None:
    assert rolled_back.run.code == 1
    assert TAKEN in rolled_back.run.printed
    assert len(rolled_back.nodes) == 2
    assert not rolled_back.nodes & deployed


def test_changed_setting_replaces_all_nodes(rolled_back: Moment, replaced: Moment) -> None:
    assert replaced.run.code == 0, replaced.run.printed
    assert "2 of 2 running nodes would be terminated and lose the data on their disks: " in replaced.run.printed
    assert len(replaced.nodes) == 2
    assert not replaced.nodes & rolled_back.nodes
    assert " 2 of 2 nodes verified" in replaced.run.printed

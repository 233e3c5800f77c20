"""`trn deploy` with the real CDK CLI: preflight first, the outputs at the end, or the reason."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from demo.inventory import Inventory
from tests.constructs.synth import cluster_template
from tests.deploy.account import Account, Run, differences
from tests.deploy.command import run_trn
from trainium_core.naming import STACK_NAME
from trainium_local.server import Settings


def app_of(folder: Path, nodes: int) -> Path:
    """A folder with a cdk.json for a plan that is synthesised already."""
    plan = {"instance_type": "trn1.32xlarge", "region": "us-west-2", "nodes": nodes, "node_recovery": "off"}
    app = str(cluster_template(nodes=nodes, node_recovery="off").file.parent)
    context = {f"trn:{name}": value for name, value in plan.items()}
    (folder / "cdk.json").write_text(json.dumps({"app": app, "context": context}))
    return folder


@pytest.fixture(scope="module")
def faulty(start_account: Callable[[Settings], Account]) -> Account:
    """An account whose first node is missing a device."""
    return start_account(Settings(fail_nodes=1))


@pytest.fixture(scope="module")
def before(faulty: Account) -> Inventory:
    return faulty.inventory()


@pytest.fixture(scope="module")
def failed(faulty: Account, before: Inventory, tmp_path_factory: pytest.TempPathFactory) -> Run:  # noqa: ARG001
    return run_trn(faulty, "deploy", "--yes", folder=app_of(tmp_path_factory.mktemp("app"), 2))


@pytest.fixture(scope="module")
def deployed(faulty: Account, failed: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:  # noqa: ARG001
    return run_trn(faulty, "deploy", "--yes", folder=app_of(tmp_path_factory.mktemp("app"), 2))


@pytest.fixture(scope="module")
def too_large(faulty: Account, deployed: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:  # noqa: ARG001
    """More nodes than the quota of 256 vCPUs allows."""
    return run_trn(faulty, "deploy", "--yes", folder=app_of(tmp_path_factory.mktemp("app"), 3))


def test_a_failed_deployment_tells_the_sentence_of_the_node(failed: Run) -> None:
    assert failed.code == 1
    assert "neuron-ls shows 15 of 16 Neuron devices (missing 15)" in failed.said


def test_and_how_the_stack_was_left_and_what_to_do(failed: Run) -> None:
    assert "State: everything it made is deleted again; nothing runs." in failed.said
    assert "Next:  run `trn deploy` again" in failed.said


def test_what_only_followed_from_the_failure_is_not_told(failed: Run) -> None:
    assert "cancelled" not in failed.said


def test_a_deployment_ends_with_the_outputs_of_its_stack(deployed: Run) -> None:
    assert deployed.code == 0, deployed.said
    assert f"{STACK_NAME}.Fleet = 2 of 2 nodes proven" in deployed.said


def test_preflight_comes_first(deployed: Run) -> None:
    assert deployed.said.index("ready: 2 x trn1.32xlarge") < deployed.said.index("Deployed.")


def test_a_plan_for_which_the_account_is_not_ready_is_not_deployed(faulty: Account, too_large: Run) -> None:
    assert too_large.code == 1
    assert "trn quota request" in too_large.said
    assert "Nothing was deployed." in too_large.said
    assert len(faulty.cluster().instances) == 2


def test_trn_destroy_leaves_nothing_of_it(faulty: Account, before: Inventory, too_large: Run) -> None:  # noqa: ARG001
    plan = ("-c", "trn:instance_type=trn1.32xlarge", "-c", "trn:region=us-west-2")
    run = run_trn(faulty, "destroy", "--yes", *plan)
    assert run.code == 0, run.said
    assert differences(before, faulty.inventory()) == []

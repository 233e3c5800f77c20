"""`trn deploy` with the real CDK CLI: preflight first, then outputs or the reason of a failure.

The fixtures run commands one after another in one account, whose first node is missing a device. Each test checks the
result of some of them.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.constructs.synth import Template, cluster_template
from tests.deploy.account import Account, Run, differences, instance_ids, outputs
from tests.deploy.command import run_trn
from tools.demo.inventory import Inventory
from trainium_core.naming import STACK_NAME
from trainium_local.server import Settings

PLAN = {"instance_type": "trn1.32xlarge", "region": "us-west-2", "node_recovery": "off"}
OPTIONS = tuple(word for name, value in PLAN.items() for word in ("-c", f"trn:{name}={value}"))


@dataclass(frozen=True, kw_only=True)
class Moment:
    """The result of a command, and the account right after it."""

    run: Run
    inventory: Inventory


def a_moment(account: Account, run: Run) -> Moment:
    return Moment(run=run, inventory=account.inventory())


def template_of(nodes: int, **settings: Any) -> Template:
    return cluster_template(nodes=nodes, node_recovery=False, **settings)


@pytest.fixture(scope="module")
def app_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A function that makes a folder with a cdk.json for a plan of this many nodes, already synthesised."""

    def make(nodes: int, **settings: Any) -> Path:
        folder = tmp_path_factory.mktemp("app")
        context = {f"trn:{name}": value for name, value in {**PLAN, "nodes": nodes, **settings}.items()}
        content = {"app": str(template_of(nodes, **settings).file.parent), "context": context}
        (folder / "cdk.json").write_text(json.dumps(content))
        return folder

    return make


@pytest.fixture(scope="module")
def faulty(start_account: Callable[[Settings], Account]) -> Account:
    return start_account(Settings(fail_nodes=1))


@pytest.fixture(scope="module")
def before(faulty: Account) -> Inventory:
    return faulty.inventory()


@pytest.fixture(scope="module")
def failed(faulty: Account, before: Inventory, app_of: Callable[..., Path]) -> Moment:  # noqa: ARG001
    return a_moment(faulty, run_trn(faulty, "deploy", "--yes", folder=app_of(2)))


@pytest.fixture(scope="module")
def looked_at(faulty: Account, failed: Moment) -> tuple[Run, Run]:  # noqa: ARG001
    """`trn nodes` and `trn status` after the failure."""
    return run_trn(faulty, "nodes", *OPTIONS), run_trn(faulty, "status", *OPTIONS)


@pytest.fixture(scope="module")
def deployed(faulty: Account, looked_at: tuple[Run, Run], app_of: Callable[..., Path]) -> Moment:  # noqa: ARG001
    return a_moment(faulty, run_trn(faulty, "deploy", "--yes", folder=app_of(2)))


@pytest.fixture(scope="module")
def with_other_disks(faulty: Account, deployed: Moment, app_of: Callable[..., Path]) -> Moment:  # noqa: ARG001
    """After `trn deploy --yes` with a change that requires new nodes."""
    return a_moment(faulty, run_trn(faulty, "deploy", "--yes", folder=app_of(2, root_volume_gib=600)))


@pytest.fixture(scope="module")
def too_large(faulty: Account, with_other_disks: Moment, app_of: Callable[..., Path]) -> Moment:  # noqa: ARG001
    """After `trn deploy --yes` with more nodes than the quota of 256 vCPUs allows."""
    return a_moment(faulty, run_trn(faulty, "deploy", "--yes", folder=app_of(3)))


@pytest.fixture(scope="module")
def over_quota(faulty: Account, too_large: Moment) -> tuple[str, Inventory]:  # noqa: ARG001
    """The outcome of the same deployment without preflight, and the account right after it."""
    return faulty.try_to_deploy(template_of(3)), faulty.inventory()


@pytest.fixture(scope="module")
def destroyed(faulty: Account, over_quota: tuple[str, Inventory]) -> Run:  # noqa: ARG001
    return run_trn(faulty, "destroy", "--yes", "--grace", "0", *OPTIONS)


def test_failed_deployment_reports_the_node_and_its_reason(failed: Moment) -> None:
    assert failed.run.code == 1
    assert "neuron-ls shows 15 of 16 Neuron devices (missing: device 15)" in " ".join(failed.run.printed.split())
    assert "node i-" in failed.run.printed


def test_failed_deployment_reports_stack_state_and_next_step(failed: Moment) -> None:
    assert "State: all created resources were deleted, except retained ones; nothing runs." in failed.run.printed
    assert "Next:  run `trn deploy` again" in failed.run.printed


def test_reports_of_terminated_failed_nodes_are_shown(looked_at: tuple[Run, Run]) -> None:
    nodes, status = looked_at
    assert nodes.code == 1
    assert "neuron-ls shows 15 of 16 Neuron devices (missing: device 15)" in " ".join(nodes.printed.split())
    assert "State: all created resources were deleted, except retained ones; nothing runs." in nodes.printed
    assert "`trn nodes` shows what failed" in status.printed


def test_failed_first_deployment_leaves_only_the_stack_name(before: Inventory, failed: Moment) -> None:
    assert differences(before, failed.inventory) == [f"+ CloudFormation stacks: {STACK_NAME}"]


def test_second_deployment_succeeds_and_ends_with_the_nodes(deployed: Moment) -> None:
    assert deployed.run.code == 0, deployed.run.printed
    assert " 2 of 2 nodes verified" in deployed.run.printed


def test_running_nodes_are_not_replaced_without_replace_nodes(deployed: Moment, with_other_disks: Moment) -> None:
    assert with_other_disks.run.code == 1, with_other_disks.run.printed
    assert "`trn deploy --replace-nodes`" in with_other_disks.run.printed
    assert "2 of 2 running nodes would be terminated and lose the data on their disks: " in with_other_disks.run.printed
    assert "trn:root_volume_gib" in with_other_disks.run.printed
    assert differences(deployed.inventory, with_other_disks.inventory) == []


def test_plan_is_not_deployed_when_preflight_fails(deployed: Moment, too_large: Moment) -> None:
    assert too_large.run.code == 1
    assert "trn quota request" in too_large.run.printed
    assert "Nothing was deployed." in too_large.run.printed
    assert differences(deployed.inventory, too_large.inventory) == []


def test_failed_scale_out_over_quota_leaves_the_cluster_unchanged(
    faulty: Account, deployed: Moment, over_quota: tuple[str, Inventory]
) -> None:
    outcome, inventory = over_quota
    assert outcome.startswith("UPDATE_ROLLBACK_COMPLETE")
    assert "L-2C3B7624" in outcome
    assert "384 vCPUs are needed" in outcome
    assert differences(deployed.inventory, inventory) == []
    assert len(instance_ids(faulty.cluster())) == 2
    assert outputs(faulty.cluster())["Fleet"] == "2 of 2 nodes verified"


def test_trn_destroy_leaves_nothing(faulty: Account, before: Inventory, destroyed: Run) -> None:
    assert destroyed.code == 0, destroyed.printed
    assert differences(before, faulty.inventory()) == []

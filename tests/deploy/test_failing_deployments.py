"""A deployment that cannot succeed says why in the words of who knows, rolls back, and leaves nothing."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from demo.inventory import Inventory
from tests.constructs.synth import ROOT, cluster_template
from tests.deploy.account import Account, Run, differences, instance_ids, outputs
from trainium_core.naming import STACK_NAME
from trainium_local.server import Settings


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A deployment that failed: what was said, how the stack ended, and the account before and after."""

    run: Run
    status: str
    before: Inventory
    after: Inventory


def fail_to_deploy(account: Account, **settings: Any) -> Failure:
    before = account.inventory()
    run = account.try_to_deploy(cluster_template(**settings))
    stacks = account.aws.client("cloudformation").describe_stacks(StackName=STACK_NAME)["Stacks"]
    return Failure(run=run, status=stacks[0]["StackStatus"], before=before, after=account.inventory())


@pytest.fixture(scope="module")
def faulty(start_account: Callable[[Settings], Account]) -> Account:
    """An account whose first node is missing a device."""
    return start_account(Settings(fail_nodes=1))


@pytest.fixture(scope="module")
def unproven(faulty: Account) -> Failure:
    return fail_to_deploy(faulty, nodes=2, node_recovery="off")


@pytest.fixture(scope="module")
def mended(faulty: Account, unproven: Failure) -> Account:  # noqa: ARG001
    """The same account after a second try, with nodes that are all right."""
    faulty.deploy(cluster_template(nodes=2))
    return faulty


@pytest.fixture(scope="module")
def over_quota(mended: Account) -> Failure:
    """A scale-out of the running cluster to more than the quota of 256 vCPUs allows."""
    return fail_to_deploy(mended, nodes=3)


def test_a_node_that_is_not_proven_fails_the_deployment_with_its_own_sentence(unproven: Failure) -> None:
    assert unproven.run.code == 1
    assert "neuron-ls shows 15 of 16 Neuron devices (missing 15)" in unproven.run.said


def test_the_sentence_names_the_node(unproven: Failure) -> None:
    assert "node i-" in unproven.run.said


def test_a_failed_first_deployment_is_rolled_back(unproven: Failure) -> None:
    assert unproven.status == "ROLLBACK_COMPLETE"


def test_a_failed_first_deployment_leaves_nothing_but_the_name_of_its_stack(unproven: Failure) -> None:
    assert differences(unproven.before, unproven.after) == [f"+ CloudFormation stacks: {STACK_NAME}"]


def test_deploying_again_after_a_failure_succeeds(mended: Account) -> None:
    assert outputs(mended.cluster())["Fleet"] == "2 of 2 nodes proven"


def test_a_scale_out_over_the_quota_fails_with_the_quota_and_the_need(over_quota: Failure) -> None:
    assert over_quota.run.code == 1
    assert "L-2C3B7624" in over_quota.run.said
    assert "384 vCPUs are needed" in over_quota.run.said


def test_a_failed_scale_out_is_rolled_back(over_quota: Failure) -> None:
    assert over_quota.status == "UPDATE_ROLLBACK_COMPLETE"


def test_a_failed_scale_out_leaves_the_cluster_as_it_was(over_quota: Failure, mended: Account) -> None:
    assert differences(over_quota.before, over_quota.after) == []
    assert len(instance_ids(mended.cluster())) == 2


def test_a_zone_without_the_type_is_refused_before_anything_is_made(faulty: Account) -> None:
    before = faulty.inventory()
    settings = ("trn:instance_type=trn1.32xlarge", "trn:region=us-west-2", "trn:availability_zone_id=usw2-az2")
    context = [word for setting in settings for word in ("--context", setting)]
    run = faulty.cdk("deploy", STACK_NAME, *context, app=f"{sys.executable} {ROOT / 'app.py'}")
    assert run.code == 1
    assert "usw2-az1" in run.said
    assert differences(before, faulty.inventory()) == []

"""HyperPodStack on the embedded AWS, until the pilot's clock deletes it.

No node boots: the lifecycle scripts are read, not run.
"""

from collections.abc import Callable

import pytest

from tests.constructs.synth import Template, a_plan
from tests.constructs.training import hyperpod_template
from tests.deploy.account import Account, differences, outputs
from tests.deploy.clock import reach_end_of_pilot
from tools.demo.inventory import Inventory
from trainium_core.engines.hyperpod.engine import HYPERPOD
from trainium_core.plan.node_settings import node_settings
from trainium_local.server import Settings
from trainium_userdata.hyperpod import hyperpod_script


@pytest.fixture(scope="module")
def account(start_account: Callable[[Settings], Account]) -> Account:
    """An account whose clock can be set forward."""
    return start_account(Settings(iam="enforced"))


@pytest.fixture(scope="module")
def template() -> Template:
    return hyperpod_template(ends="40h")


@pytest.fixture(scope="module")
def before(account: Account) -> Inventory:
    return account.inventory()


@pytest.fixture(scope="module")
def stack_outputs(account: Account, before: Inventory, template: Template) -> dict[str, str]:  # noqa: ARG001
    account.cdk_deploy(template, HYPERPOD.construct_id)
    return dict(outputs(account.cluster(HYPERPOD.construct_id)))


@pytest.fixture(scope="module")
def scripts(account: Account, stack_outputs: dict[str, str]) -> dict[str, str]:
    """The lifecycle files, from the URL of the cluster's workers."""
    sagemaker, s3 = account.aws.client("sagemaker"), account.aws.client("s3")
    groups = sagemaker.describe_cluster(ClusterName=stack_outputs["ClusterArn"])["InstanceGroups"]
    (place,) = {one["LifeCycleConfig"]["SourceS3Uri"] for one in groups if one["InstanceGroupName"] == "workers"}
    assert place.startswith("s3://sagemaker-")
    bucket, _, prefix = place.removeprefix("s3://").partition("/")
    listed = [one["Key"] for one in s3.list_objects_v2(Bucket=bucket, Prefix=prefix)["Contents"]]
    return {
        key.removeprefix(f"{prefix}/"): s3.get_object(Bucket=bucket, Key=key)["Body"].read().decode() for key in listed
    }


def test_every_resource_of_the_template_exists(
    account: Account, stack_outputs: dict[str, str], template: Template
) -> None:
    assert stack_outputs
    names = [one["LogicalResourceId"] for one in account.cluster(HYPERPOD.construct_id).resources]
    assert sorted(names) == sorted(template.resources())


def test_workers_have_the_script_of_their_plan(scripts: dict[str, str]) -> None:
    assert scripts["on_create.sh"] == hyperpod_script(node_settings(a_plan()))


def test_workers_have_the_cache_url_of_this_stack(scripts: dict[str, str], stack_outputs: dict[str, str]) -> None:
    assert f"TRN_CACHE_URL={stack_outputs['CompileCache']}" in scripts["places.env"].splitlines()


def test_ended_pilot_leaves_the_account_unchanged(
    account: Account,
    before: Inventory,
    scripts: dict[str, str],  # noqa: ARG001
) -> None:
    reach_end_of_pilot(account, HYPERPOD.construct_id)
    assert differences(before, account.inventory()) == []
    assert account.aws.client("sagemaker").list_clusters()["ClusterSummaries"] == []

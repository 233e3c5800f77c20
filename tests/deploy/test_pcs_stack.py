"""PcsStack on the embedded AWS by the real CDK CLI, until its clock ends it. No instance and no Slurm runs there."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from tests.constructs.synth import Template
from tests.constructs.training import pcs_template
from tests.deploy.account import Account, differences, outputs
from tests.deploy.clock import reach_end_of_pilot
from tools.demo.inventory import Inventory
from trainium_core.engines.pcs.engine import PCS
from trainium_core.naming import PCS_CLUSTER_OUTPUT, PCS_GROUP_OUTPUT, RECORDS_OUTPUT
from trainium_local.server import Settings
from trainium_wire.formats import time_text
from trainium_wire.keys import RECORDS_PREFIX, instance_key, instance_name
from trainium_wire.node_record import NodeRecord


@pytest.fixture(scope="module")
def account(start_account: Callable[[Settings], Account]) -> Account:
    """An account whose clock can be set forward."""
    return start_account(Settings(iam="enforced"))


@pytest.fixture(scope="module")
def template() -> Template:
    return pcs_template(pcs_ami="ami-0123456789abcdef0", pcs_queues=("short:10", "long"), ends="40h")


@pytest.fixture(scope="module")
def before(account: Account) -> Inventory:
    return account.inventory()


@pytest.fixture(scope="module")
def found(account: Account, before: Inventory, template: Template) -> dict[str, str]:  # noqa: ARG001
    """The outputs of the deployed stack."""
    account.cdk_deploy(template, PCS.construct_id)
    return dict(outputs(account.cluster(PCS.construct_id)))


def test_every_resource_of_the_template_exists(account: Account, found: dict[str, str], template: Template) -> None:
    assert found
    names = [one["LogicalResourceId"] for one in account.cluster(PCS.construct_id).resources]
    assert sorted(names) == sorted(template.resources())


def test_cluster_has_its_groups_and_queues(account: Account, found: dict[str, str]) -> None:
    pcs, cluster = account.aws.client("pcs"), {"clusterIdentifier": found[PCS_CLUSTER_OUTPUT]}
    groups = pcs.list_compute_node_groups(**cluster)["computeNodeGroups"]
    assert {one["name"] for one in groups} == {"nodes", "login"}
    assert [one["name"] for one in pcs.list_queues(**cluster)["queues"]] == ["short", "long"]


def test_nodes_fetch_the_version_of_the_script_that_the_group_names(account: Account, found: dict[str, str]) -> None:
    pcs, s3 = account.aws.client("pcs"), account.aws.client("s3")
    named = {
        "clusterIdentifier": found[PCS_CLUSTER_OUTPUT],
        "computeNodeGroupIdentifier": found[PCS_GROUP_OUTPUT],
    }
    group = pcs.get_compute_node_group(**named)["computeNodeGroup"]
    (script,) = group["nodeLifecycleActions"]["stages"]["nodeBootstrapped"]
    bucket, _, key = script["scriptSource"]["scriptLocation"].removeprefix("s3://").partition("/")
    version = script["scriptSource"]["s3VersionId"]
    text = s3.get_object(Bucket=bucket, Key=key, VersionId=version)["Body"].read()
    assert text.startswith(b"#!/")


def test_failed_proofs_beyond_the_limit_end_the_launches(account: Account, found: dict[str, str]) -> None:
    s3, pcs = account.aws.client("s3"), account.aws.client("pcs")
    for number in range(3):
        node = f"i-{number:017x}"
        record = NodeRecord(instance_id=node, state="failed", time=time_text(datetime.now(UTC)), reason="no device")
        key = instance_key(RECORDS_PREFIX, instance_name(node, None))
        s3.put_object(Bucket=found[RECORDS_OUTPUT], Key=key, Body=record.to_json())
    named = {"clusterIdentifier": found[PCS_CLUSTER_OUTPUT], "computeNodeGroupIdentifier": found[PCS_GROUP_OUTPUT]}
    deadline = time.monotonic() + 120
    bounds = {"maxInstanceCount": -1}
    while bounds["maxInstanceCount"] and time.monotonic() < deadline:
        time.sleep(0.5)
        bounds = pcs.get_compute_node_group(**named)["computeNodeGroup"]["scalingConfiguration"]
    assert bounds == {"minInstanceCount": 0, "maxInstanceCount": 0}


def test_ended_pilot_leaves_the_account_unchanged(
    account: Account,
    before: Inventory,
    found: dict[str, str],  # noqa: ARG001
) -> None:
    reach_end_of_pilot(account, PCS.construct_id)
    assert differences(before, account.inventory()) == []
    assert account.aws.client("pcs").list_clusters()["clusters"] == []
    assert account.aws.client("logs").describe_delivery_sources()["deliverySources"] == []

"""Failed nodes are replaced during a deployment, up to the limit of the plan, and the membership is updated."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.constructs.synth import cluster_template
from tests.deploy.account import Account, instance_ids, outputs
from tests.deploy.permitted import execution_policies
from trainium_local.server import Settings
from trainium_wire.keys import MEMBERSHIP_KEY
from trainium_wire.membership import Membership


@pytest.fixture(scope="module")
def faulty(start_account: Callable[..., Account]) -> Account:
    """An account whose first three nodes are missing a device. CloudFormation has the policies of `trn permissions`."""
    return start_account(Settings(fail_nodes=3, iam="enforced"), execution_policies)


@pytest.fixture(scope="module")
def given_up(faulty: Account) -> str:
    """The outcome of a deployment that launches the first two of these nodes."""
    return faulty.try_to_deploy(cluster_template(nodes=1, node_replacements=1))


@pytest.fixture(scope="module")
def healed(faulty: Account, given_up: str) -> Account:  # noqa: ARG001
    """The account after another deployment, which launches the third of these nodes."""
    faulty.destroy()  # As the CDK CLI does after the rollback of a creation.
    faulty.deploy(cluster_template(nodes=2))
    return faulty


def controller_log(account: Account) -> list[dict[str, Any]]:
    logs = account.aws.client("logs")
    (group,) = [name for name in account.cluster().ids("AWS::Logs::LogGroup") if "Controller" in name]
    messages = [event["message"] for event in logs.filter_log_events(logGroupName=group)["events"]]
    return [json.loads(message) for message in messages if message.startswith("{")]


def test_failure_after_the_last_replacement_fails_the_deployment(given_up: str) -> None:
    assert given_up.startswith("ROLLBACK_COMPLETE")
    assert (
        "neuron-ls shows 15 of 16 Neuron devices (missing: device 15); not replaced: 1 of 1 replacements within 24 "
        "hours are used" in given_up
    )


def test_failed_node_is_replaced_and_the_deployment_succeeds(healed: Account) -> None:
    assert outputs(healed.cluster())["Fleet"] == "2 of 2 nodes verified"


def test_replaced_node_leaves_the_group_and_its_record_is_kept(healed: Account) -> None:
    (failed,) = [record.instance_id for record in healed.cluster().records if record.state == "failed"]
    assert failed not in instance_ids(healed.cluster())
    # Invocations that run at the same time may log it twice.
    (replaced,) = {(line["replaced"], line["why"]) for line in controller_log(healed) if "replaced" in line}
    assert replaced[0] == failed
    assert replaced[1].endswith("(missing: device 15); being replaced (1 of 2)")


def test_every_record_is_in_the_log_of_the_controller(healed: Account) -> None:
    stored = {record.instance_id for record in healed.cluster().records}
    deadline = time.monotonic() + 480  # The last invocation of the controller may still be running.
    while time.monotonic() < deadline:
        logged = {line["record"]["instance_id"] for line in controller_log(healed) if "record" in line}
        if logged == stored:
            return
        time.sleep(0.1)
    pytest.fail(f"logged {logged}, stored {stored}")


def test_membership_lists_the_running_nodes_with_their_addresses(healed: Account) -> None:
    bucket = outputs(healed.cluster())["NodeRecords"]
    text = healed.aws.client("s3").get_object(Bucket=bucket, Key=MEMBERSHIP_KEY)["Body"].read().decode()
    there = {node["InstanceId"]: node["PrivateIpAddress"] for node in healed.cluster().instances}
    assert Membership.from_json(text) == Membership.of(there)

"""PcsStack on the embedded AWS, until the pilot's clock or `trn destroy` deletes it.

Instances run no programs, and a stand-in answers for Slurm: jobs wait in its queue. The tests launch the nodes that
jobs would start.
"""

import json
import tarfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.constructs.synth import Template
from tests.constructs.training import pcs_template
from tests.deploy.account import Account, differences, outputs
from tests.deploy.clock import reach_end_of_pilot
from tests.deploy.command import run_trn
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


PLAN = ("-c", "trn:stacks=pcs", "-c", "trn:instance_type=trn1.32xlarge", "-c", "trn:region=us-west-2")
QUEUES = ("-c", "trn:pcs_queues=short:10,long", "-c", "trn:nodes=2")


@pytest.fixture(scope="module")
def template() -> Template:
    return pcs_template(pcs_queues=("short:10", "long"), ends="40h", nodes=2)


@pytest.fixture(scope="module")
def before(account: Account) -> Inventory:
    return account.inventory()


@pytest.fixture(scope="module")
def stack_outputs(account: Account, before: Inventory, template: Template) -> dict[str, str]:  # noqa: ARG001
    account.cdk_deploy(template, PCS.construct_id)
    return dict(outputs(account.cluster(PCS.construct_id)))


def test_every_resource_of_the_template_exists(
    account: Account, stack_outputs: dict[str, str], template: Template
) -> None:
    assert stack_outputs
    names = [one["LogicalResourceId"] for one in account.cluster(PCS.construct_id).resources]
    assert sorted(names) == sorted(template.resources())


def test_cluster_has_its_groups_and_queues(account: Account, stack_outputs: dict[str, str]) -> None:
    pcs, cluster = account.aws.client("pcs"), {"clusterIdentifier": stack_outputs[PCS_CLUSTER_OUTPUT]}
    groups = pcs.list_compute_node_groups(**cluster)["computeNodeGroups"]
    assert {one["name"] for one in groups} == {"nodes", "login-m7i-large"}
    assert [one["name"] for one in pcs.list_queues(**cluster)["queues"]] == ["short", "long"]


def test_group_names_an_existing_version_of_its_script(account: Account, stack_outputs: dict[str, str]) -> None:
    pcs, s3 = account.aws.client("pcs"), account.aws.client("s3")
    named = {
        "clusterIdentifier": stack_outputs[PCS_CLUSTER_OUTPUT],
        "computeNodeGroupIdentifier": stack_outputs[PCS_GROUP_OUTPUT],
    }
    group = pcs.get_compute_node_group(**named)["computeNodeGroup"]
    (script,) = group["nodeLifecycleActions"]["stages"]["nodeBootstrapped"]
    bucket, _, key = script["scriptSource"]["scriptLocation"].removeprefix("s3://").partition("/")
    version = script["scriptSource"]["s3VersionId"]
    text = s3.get_object(Bucket=bucket, Key=key, VersionId=version)["Body"].read()
    assert text.startswith(b"#!/")


def launch_node(account: Account, stack_outputs: dict[str, str]) -> str:
    """Launch a node as AWS PCS does for a job, and write its record."""
    pcs, ec2, s3 = (account.aws.client(name) for name in ("pcs", "ec2", "s3"))
    named = {
        "clusterIdentifier": stack_outputs[PCS_CLUSTER_OUTPUT],
        "computeNodeGroupIdentifier": stack_outputs[PCS_GROUP_OUTPUT],
    }
    group = pcs.get_compute_node_group(**named)["computeNodeGroup"]
    tags = [{"Key": "aws:pcs:compute-node-group-id", "Value": group["id"]}]
    template = group["customLaunchTemplate"]
    made = ec2.run_instances(
        MinCount=1,
        MaxCount=1,
        InstanceType="trn1.32xlarge",
        LaunchTemplate={"LaunchTemplateId": template["id"], "Version": template["version"]},
        SubnetId=group["subnetIds"][0],
        TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
    )
    node = made["Instances"][0]["InstanceId"]
    record = NodeRecord(instance_id=node, state="verified", time=time_text(datetime.now(UTC)))
    key = instance_key(RECORDS_PREFIX, instance_name(node, None))
    s3.put_object(Bucket=stack_outputs[RECORDS_OUTPUT], Key=key, Body=record.to_json())
    return node


def test_commands_show_the_nodes_of_jobs_and_the_login_node(
    account: Account, stack_outputs: dict[str, str], tmp_path: Path
) -> None:
    empty = run_trn(account, "nodes", *PLAN)
    assert (empty.code, "no nodes, since no job needs any; jobs start up to 2" in empty.printed) == (0, True)
    node = launch_node(account, stack_outputs)
    shown = run_trn(account, "nodes", *PLAN)
    assert shown.code == 0, shown.printed
    assert f"{node}" in shown.printed
    assert "1 of 1 nodes verified" in shown.printed
    status = json.loads(run_trn(account, "status", *PLAN, "--json").printed)
    assert (status["nodes"]["state"], status["login_nodes"], status["not_read"]) == ("ready", {"m7i.large": 1}, [])
    (listed,) = json.loads(run_trn(account, "list", "--region", "us-west-2", "--json").printed)["clusters"]
    assert sorted(one["instance_type"] for one in listed["nodes"]) == ["m7i.large", "trn1.32xlarge"]
    cost = json.loads(run_trn(account, "cost", *PLAN, "--no-cost-explorer", "--json").printed)
    assert not cost["not_read"]
    archive = tmp_path / "support.tar.gz"
    made = run_trn(account, "support", *PLAN, "--yes", "--output", str(archive))
    assert made.code == 0, made.printed
    with tarfile.open(archive) as files:
        (activities,) = (name for name in files.getnames() if name.endswith("/scaling-activities.json"))
        member = files.extractfile(activities)
        assert member
        assert json.load(member) == []
    account.aws.client("ec2").terminate_instances(InstanceIds=[node])


def test_job_waits_in_its_queue_until_it_is_stopped(
    account: Account, stack_outputs: dict[str, str], tmp_path: Path
) -> None:
    del stack_outputs
    (tmp_path / "train.py").write_text("print('TRN step=1')\n")
    started = run_trn(account, "run", *PLAN, *QUEUES, "--detach", "--queue", "long", "train.py", folder=tmp_path)
    assert started.code == 0, started.printed
    assert "No code will run" in started.printed
    (job,) = json.loads(run_trn(account, "jobs", *PLAN, *QUEUES, "--json").printed)
    assert (job["engine"], job["status"]) == ("pcs", "queued")
    shown = run_trn(account, "jobs", *PLAN, *QUEUES, job["job"]["id"])
    assert "no code runs: the embedded AWS starts no Slurm nodes" in " ".join(shown.printed.split())
    stopped = run_trn(account, "stop", *PLAN, *QUEUES, job["job"]["id"])
    assert "has ended: stopped" in stopped.printed


def test_failed_proofs_beyond_the_limit_end_the_launches(account: Account, stack_outputs: dict[str, str]) -> None:
    s3, pcs = account.aws.client("s3"), account.aws.client("pcs")
    for number in range(3):
        node = f"i-{number:017x}"
        record = NodeRecord(instance_id=node, state="failed", time=time_text(datetime.now(UTC)), reason="no device")
        key = instance_key(RECORDS_PREFIX, instance_name(node, None))
        s3.put_object(Bucket=stack_outputs[RECORDS_OUTPUT], Key=key, Body=record.to_json())
    named = {
        "clusterIdentifier": stack_outputs[PCS_CLUSTER_OUTPUT],
        "computeNodeGroupIdentifier": stack_outputs[PCS_GROUP_OUTPUT],
    }
    deadline = time.monotonic() + 480
    bounds = {"maxInstanceCount": -1}
    while bounds["maxInstanceCount"] and time.monotonic() < deadline:
        time.sleep(0.5)
        bounds = pcs.get_compute_node_group(**named)["computeNodeGroup"]["scalingConfiguration"]
    assert bounds == {"minInstanceCount": 0, "maxInstanceCount": 0}
    shown = run_trn(account, "nodes", *PLAN)
    assert (shown.code, "the maximum of the group is 0, not 2" in shown.printed) == (1, True)


def test_ended_pilot_leaves_the_account_unchanged(
    account: Account,
    before: Inventory,
    stack_outputs: dict[str, str],  # noqa: ARG001
) -> None:
    reach_end_of_pilot(account, PCS.construct_id)
    assert differences(before, account.inventory()) == []
    assert account.aws.client("pcs").list_clusters()["clusters"] == []
    assert account.aws.client("logs").describe_delivery_sources()["deliverySources"] == []


def test_destroy_ends_waiting_jobs_and_leaves_nothing(
    account: Account, before: Inventory, template: Template, tmp_path: Path
) -> None:
    account.deploy(template, PCS.construct_id)
    (tmp_path / "train.py").write_text("print('TRN step=1')\n")
    started = run_trn(account, "run", *PLAN, *QUEUES, "--detach", "train.py", folder=tmp_path)
    assert started.code == 0, started.printed
    launch_node(account, dict(outputs(account.cluster(PCS.construct_id))))
    destroyed = run_trn(account, "destroy", *PLAN, "--yes")
    assert destroyed.code == 0, destroyed.printed
    assert "waiting Slurm job" in destroyed.printed
    audited = run_trn(account, "audit", *PLAN)
    assert audited.code == 0, audited.printed
    assert differences(before, account.inventory()) == []

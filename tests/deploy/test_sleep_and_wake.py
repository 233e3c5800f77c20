"""`trn sleep`, `trn wake` and `trn extend` on a deployed cluster."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.constructs.synth import cluster_template
from tests.deploy.account import Account, Run, differences, instance_ids
from tests.deploy.command import run_trn
from tests.deploy.pages import shown_in, words
from tools.demo.inventory import Inventory
from trainium_local.server import Settings

IMAGE = "/my/image"
PLAN = {"instance_type": "trn1.32xlarge", "region": "us-west-2", "nodes": 2, "ami": IMAGE}
OPTIONS = tuple(word for name, value in PLAN.items() for word in ("-c", f"trn:{name}={value}"))
GONE_WHILE_ASLEEP = (
    "VPC endpoints",
    "NAT gateways",
    "Elastic IP addresses",
    "network interfaces",
    "instances",
    "volumes",
    "anything tagged",
)
"""The only kinds that may lose resources while the cluster sleeps."""


@dataclass(frozen=True, kw_only=True)
class Moment:
    """The result of a command, and the account right after it."""

    run: Run
    inventory: Inventory


@pytest.fixture(scope="module")
def account(start_account: Callable[[Settings], Account]) -> Account:
    return start_account(Settings())


def name_image(account: Account, place: int) -> None:
    """Let the parameter name one of the Neuron images."""
    neuron = [{"Name": "name", "Values": ["Deep Learning AMI Neuron*"]}]
    neuron_images = account.aws.client("ec2").describe_images(Filters=neuron)["Images"]
    value = sorted(image["ImageId"] for image in neuron_images)[place]
    account.aws.client("ssm").put_parameter(Name=IMAGE, Value=value, Type="String", Overwrite=True)


def images(account: Account) -> set[str]:
    return {instance["ImageId"] for instance in account.cluster().instances}


@pytest.fixture(scope="module")
def awake(account: Account) -> Inventory:
    name_image(account, 0)
    account.deploy(cluster_template(nodes=2, ami=IMAGE))
    return account.inventory()


@pytest.fixture(scope="module")
def nodes_awake(account: Account, awake: Inventory) -> Run:  # noqa: ARG001
    return run_trn(account, "nodes", *OPTIONS, environment={"COLUMNS": "100"})


@pytest.fixture(scope="module")
def image_before(account: Account, nodes_awake: Run) -> set[str]:  # noqa: ARG001
    """The image that the nodes boot; the parameter then names another image."""
    before = images(account)
    name_image(account, -1)
    return before


@pytest.fixture(scope="module")
def asleep(account: Account, image_before: set[str]) -> Moment:  # noqa: ARG001
    return Moment(run=run_trn(account, "sleep", "--yes", "--grace", "1s", *OPTIONS), inventory=account.inventory())


@pytest.fixture(scope="module")
def asleep_already(account: Account, asleep: Moment) -> Run:  # noqa: ARG001
    return run_trn(account, "sleep", *OPTIONS)


@pytest.fixture(scope="module")
def redeployed(account: Account, asleep_already: Run) -> Inventory:  # noqa: ARG001
    """The account after a deployment of the sleeping cluster."""
    account.deploy(cluster_template(nodes=2, ami=IMAGE, suppress_checks=("efa-devices",)))
    return account.inventory()


@pytest.fixture(scope="module")
def woken(account: Account, redeployed: Inventory) -> Moment:  # noqa: ARG001
    return Moment(run=run_trn(account, "wake", "--yes", *OPTIONS), inventory=account.inventory())


def test_nodes_of_a_pilot_are_shown_as_on_its_page(nodes_awake: Run) -> None:
    assert words(nodes_awake.printed) == shown_in("start/pilot.md", "trn nodes")


def test_sleep_ends_nodes_and_their_volumes(asleep: Moment) -> None:
    assert asleep.run.code == 0, asleep.run.printed
    assert asleep.inventory["instances"] == frozenset()
    assert asleep.inventory["volumes"] == frozenset()


def test_sleep_removes_nothing_else(awake: Inventory, asleep: Moment) -> None:
    lost = [line for line in differences(awake, asleep.inventory) if line.startswith("- ")]
    assert [line for line in lost if not line[2:].startswith(GONE_WHILE_ASLEEP)] == []


def test_sleep_prints_the_cost_while_asleep(asleep: Moment) -> None:
    assert "asleep: $" in asleep.run.printed
    assert "per month" in asleep.run.printed


def test_sleep_of_a_sleeping_cluster_does_not_prompt(asleep_already: Run) -> None:
    assert asleep_already.code == 0
    assert "already asleep" in asleep_already.printed


def test_deployment_leaves_a_sleeping_cluster_asleep(redeployed: Inventory) -> None:
    assert redeployed["instances"] == frozenset()


def test_wake_restores_the_number_of_resources_of_each_kind(awake: Inventory, woken: Moment) -> None:
    assert woken.run.code == 0, woken.run.printed
    counts = {kind: len(ids) for kind, ids in woken.inventory.items() if kind != "S3 objects"}
    assert counts == {kind: len(ids) for kind, ids in awake.items() if kind != "S3 objects"}


def test_wake_ends_when_every_node_is_verified(account: Account, woken: Moment) -> None:
    assert "is awake: 2 of 2 nodes verified." in woken.run.printed
    instances = {instance["InstanceId"] for instance in account.cluster().instances}
    assert instances <= {record.instance_id for record in account.cluster().records if record.state == "verified"}


def test_wake_boots_the_previous_image_of_the_nodes(account: Account, image_before: set[str], woken: Moment) -> None:
    assert woken.run.code == 0, woken.run.printed
    assert images(account) == image_before


def test_extend_writes_the_new_end_and_keeps_the_nodes(account: Account, woken: Moment, tmp_path: Path) -> None:
    assert woken.run.code == 0
    app = str(cluster_template(nodes=2, ami=IMAGE).file.parent)
    before = instance_ids(account.cluster())
    settings = {f"trn:{name}": value for name, value in PLAN.items()} | {"trn:ends": "2030-01-01T00:00Z"}
    (tmp_path / "cdk.json").write_text(json.dumps({"app": app, "context": settings}))
    run = run_trn(account, "extend", "8h", "--yes", folder=tmp_path)
    assert run.code == 0, run.printed
    assert "This deployment does not terminate running nodes. Running: 2." in run.printed
    assert instance_ids(account.cluster()) == before
    assert "New end of trn-pilot: 2030-01-01T08:00Z." in run.printed
    assert "According to the current trn:ends, TrnClusterStack ends at 2030-01-01T00:00Z" in run.printed
    assert "8 hours more cost $" in run.printed
    assert json.loads((tmp_path / "cdk.json").read_text())["context"]["trn:ends"] == "2030-01-01T08:00Z"


def test_job_is_notified_and_ends_with_its_nodes(account: Account, woken: Moment, tmp_path: Path) -> None:  # noqa: ARG001
    job, started = tmp_path / "job.toml", tmp_path / "started"
    command = f'trap "echo saved" USR1; echo $$ >> {started}; while sleep 0.1; do :; done'
    job.write_text(f"name = 'long'\ncommand = '{command}'\n")
    ran = run_trn(account, "run", "--detach", *OPTIONS, str(job))
    assert ran.code == 0, ran.printed
    deadline = time.monotonic() + 480
    while not started.exists() or len(started.read_text().splitlines()) < 2:
        assert time.monotonic() < deadline, "the job does not run on both nodes"
        time.sleep(0.1)
    slept = run_trn(account, "sleep", "--yes", "--grace", "30s", *OPTIONS)
    assert slept.code == 0, slept.printed
    followed = run_trn(account, "logs", "--follow", *OPTIONS)
    assert "saved" in followed.printed
    assert "Reason: the cluster trn-pilot goes to sleep" in followed.printed
    assert [process for process in started.read_text().split() if Path("/proc", process).exists()] == []

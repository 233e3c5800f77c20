"""A changed name of a cluster: an app replaces the nodes, and `trn deploy` refuses a second cluster of the project."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import Environment, Stack
from aws_cdk import aws_ec2 as ec2

from tests.constructs.synth import REGION, Template, new_app, synthesize
from tests.deploy.account import Account, differences, instance_ids
from tests.deploy.command import run_trn
from trainium_cdk import ClusterNetwork, NeuronFleet
from trainium_local.server import Settings

APP_BUCKET = """
from aws_cdk import RemovalPolicy
from aws_cdk import aws_s3 as s3
s3.Bucket(app.node.find_child("TrnClusterStack"), "Data", removal_policy=RemovalPolicy.DESTROY)
app.synth()
"""


@pytest.fixture(scope="module")
def account(start_account: Callable[[Settings], Account]) -> Account:
    # Room for one trn1.2xlarge.
    return start_account(Settings(iam="enforced", quotas={"L-2C3B7624": 8}))


def template(cluster_name: str) -> Template:
    stack = Stack(new_app(), "Jobs", env=Environment(region=REGION))
    NeuronFleet(
        stack,
        "Fleet",
        instance_type=ec2.InstanceType("trn1.2xlarge"),
        vpc=ClusterNetwork(stack, "Network", zone_id="usw2-az4", egress="none").vpc,
        cluster_name=cluster_name,
    )
    return synthesize(stack)


def trn(account: Account, *arguments: str, folder: Path | None = None, code: int = 0) -> str:
    ran = run_trn(account, *arguments, folder=folder, environment={"COLUMNS": "250"})
    assert ran.code == code, f"trn {' '.join(arguments)}: {ran.printed}"
    return ran.printed


def listed(account: Account, *, folder: Path | None = None) -> dict[str, tuple[str, int]]:
    """The state and the number of nodes of each cluster."""
    clusters = json.loads(trn(account, "list", "--json", folder=folder))["clusters"]
    return {one["name"]: (one["state"], len(one["nodes"])) for one in clusters}


def test_new_name_in_an_app_replaces_the_nodes_and_leaves_no_cluster_of_the_old_name(account: Account) -> None:
    before = account.inventory()
    account.cdk_deploy(template("jobs"), "Jobs")
    first = instance_ids(account.cluster("Jobs"))
    account.cdk_deploy(template("jobs2"), "Jobs")
    assert listed(account) == {"jobs2": ("running", 1)}
    assert not first & instance_ids(account.cluster("Jobs"))
    assert "ready: 1 of 1 nodes verified" in trn(account, "nodes", "--cluster", "jobs2", "--region", REGION)
    trn(account, "destroy", "--cluster", "jobs2", "--region", REGION, "--whole-stacks", "--yes", "--grace", "0")
    assert differences(before, account.inventory()) == []


@pytest.fixture(scope="module")
def folder(account: Account) -> Path:
    """The folder of `trn init`, whose stack also has a bucket of the user."""
    options = ("--type", "trn1.2xlarge", "--region", REGION, "--ends", "8h", "--yes")
    trn(account, "init", "pilot", *options)
    made = account.folder / "pilot"
    app = made / "app.py"
    app.write_text(app.read_text().replace("app.synth()\n", APP_BUCKET))
    return made


def set_name(folder: Path, name: str) -> None:
    file = folder / "cdk.json"
    settings: dict[str, Any] = json.loads(file.read_text())
    settings["context"]["trn:cluster_name"] = name
    file.write_text(json.dumps(settings))


def test_folder_of_trn_init_ends_the_cluster_that_it_deployed_under_another_name(
    account: Account, folder: Path
) -> None:
    before = account.inventory()
    trn(account, "deploy", "--yes", folder=folder)
    set_name(folder, "pilot2")
    refused = " ".join(trn(account, "deploy", "--yes", folder=folder, code=1).split())
    assert "this project deployed pilot (pilot-TrnClusterStack), which would keep running" in refused
    assert "trn destroy --cluster pilot" in refused
    assert listed(account, folder=folder) == {"pilot": ("running", 1)}
    assert "Deployed by this project: pilot." in trn(account, "list", folder=folder)

    s3 = account.aws.client("s3")
    (data,) = [name for name in account.cluster("pilot-TrnClusterStack").ids("AWS::S3::Bucket") if "-data" in name]
    s3.put_object(Bucket=data, Key="kept", Body=b"x")
    destroy = ("destroy", "--cluster", "pilot", "--yes", "--grace", "0")
    assert f"aws s3 rm s3://{data} --recursive" in trn(account, *destroy, folder=folder, code=1)
    assert listed(account, folder=folder) == {"pilot": ("running", 1)}
    s3.delete_object(Bucket=data, Key="kept")
    trn(account, *destroy, folder=folder)
    trn(account, "audit", "--cluster", "pilot", folder=folder)
    assert differences(before, account.inventory()) == []

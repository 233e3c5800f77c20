"""A first deployment in zones without capacity, with the real CDK CLI."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.deploy.account import Account, Run, differences
from tests.deploy.command import run_trn
from tools.demo.inventory import Inventory
from trainium_local.server import Settings

ZONES = ("usw2-az1", "usw2-az4")
"""The zones of us-west-2 that offer trn1.2xlarge, in the order of the catalogue."""


@dataclass(frozen=True, kw_only=True)
class Attempt:
    run: Run
    plan: Path
    before: str
    account: Account
    resources: tuple[Inventory, Inventory]


@pytest.fixture(scope="module")
def attempt(start_account: Callable[..., Account], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Attempt]:
    def deploy(*without_capacity: str, timeout_minutes: int) -> Attempt:
        account = start_account(Settings(no_capacity=without_capacity))
        folder = tmp_path_factory.mktemp("app")
        new = ("--type", "trn1.2xlarge", "--region", "us-west-2", "--ends", "8h", "--yes")
        assert run_trn(account, "init", *new, folder=folder).code == 0
        plan = folder / "cdk.json"
        settings = json.loads(plan.read_text())
        settings["context"] |= {"trn:node_timeout_minutes": timeout_minutes, "trn:cache_at_destroy": "retain"}
        plan.write_text(before := json.dumps(settings, indent=2))
        empty = account.inventory()
        run = run_trn(account, "deploy", "--yes", folder=folder)
        return Attempt(run=run, plan=plan, before=before, account=account, resources=(empty, account.inventory()))

    return deploy


def test_deployment_moves_to_the_zone_with_capacity(attempt: Callable[..., Attempt]) -> None:
    moved = attempt(ZONES[0], timeout_minutes=4)
    assert moved.run.code == 0, moved.run.printed
    assert f"Trying {ZONES[1]}, at $" in moved.run.printed
    context = json.loads(moved.plan.read_text())["context"]
    assert context == json.loads(moved.before)["context"] | {"trn:availability_zone_id": ZONES[1]}
    ec2 = moved.account.aws.client("ec2")
    (node,) = [i for r in ec2.describe_instances()["Reservations"] for i in r["Instances"] if i["State"]["Code"] == 16]
    (zone,) = ec2.describe_availability_zones(ZoneIds=[ZONES[1]])["AvailabilityZones"]
    assert node["Placement"]["AvailabilityZone"] == zone["ZoneName"]


def test_deployment_without_capacity_in_any_zone_leaves_only_the_stack_name(attempt: Callable[..., Attempt]) -> None:
    failed = attempt(*ZONES, timeout_minutes=1)
    assert failed.run.code == 1, failed.run.printed
    printed = " ".join(failed.run.printed.split())
    assert f"all without capacity: {', '.join(ZONES)}." in printed
    assert "run `trn capacity`" in printed
    assert failed.plan.read_text() == failed.before
    (left,) = differences(*failed.resources)
    assert left.startswith("+ CloudFormation stacks: ")

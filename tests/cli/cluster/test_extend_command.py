"""`trn extend`: what it writes, deploys and prints. A real deployment is in tests/deploy."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import pytest
from click.testing import Result

from tests.cli.running import run
from tests.core.fake_capacity import SCHEDULED_BLOCK
from trainium_cli.cluster import extend_command
from trainium_cli.exit_codes import ExitCode
from trainium_core.aws.capacity import Reservation
from trainium_core.plan import Plan
from trainium_core.prices.price import Price, PricedItem
from trainium_core.stacks.deployed_stack import DeployedStack
from trainium_runtime.errors import UnavailableError

PARAMETER = "/my/image"
CREATED = datetime(2026, 1, 1, tzinfo=UTC)
PLAN = {"instance_type": "trn1.32xlarge", "region": "us-west-2", "ends": "2099-01-01T00:00Z", "ami": PARAMETER}


def deployed_stack(*, created: datetime = CREATED) -> DeployedStack:
    return DeployedStack(stack_id="id", status="CREATE_COMPLETE", created=created)


@dataclass
class FakeStacks:
    """An account and its deployments.

    Attributes:
        existing: Existing stacks by name.
        unavailable: Whether requests fail.
        ended: The result of each deployment.
        deployed: The stacks of each deployment.
    """

    existing: Mapping[str, DeployedStack] = field(default_factory=lambda: {"TrnClusterStack": deployed_stack()})
    unavailable: bool = False
    ended: ExitCode = ExitCode.OK
    deployed: list[Sequence[str]] = field(default_factory=list[Sequence[str]])
    ends: list[str | None] = field(default_factory=list[str | None])

    @property
    def stacks(self) -> Self:
        return self

    prices = capacity = stacks

    def reservation(self, reservation_id: str) -> Reservation:
        return replace(SCHEDULED_BLOCK, reservation_id=reservation_id, start=datetime(2098, 1, 1, tzinfo=UTC))

    def deployed_stack(self, name: str) -> DeployedStack | None:
        if self.unavailable:
            raise UnavailableError(f"no answer about {name}")
        return self.existing.get(name)

    def price(self, item: PricedItem) -> Price:
        raise UnavailableError(f"no price of {item.product}")

    def deploy(self, plan: Plan, engines: Sequence[str], **_: object) -> ExitCode:
        self.ends.append(plan.pilot.ends)
        self.deployed.append([plan.stack_names[engine] for engine in engines])
        return self.ended


def extend(
    monkeypatch: pytest.MonkeyPatch, folder: Path, account: FakeStacks, answer: str | None = None, **settings: Any
) -> Result:
    context = {f"trn:{name}": value for name, value in {**PLAN, **settings}.items()}
    (folder / "cdk.json").write_text(json.dumps({"app": "true", "context": context}))
    monkeypatch.setattr(extend_command, "AwsAccount", lambda _: account)
    monkeypatch.setattr(extend_command, "deploy_stacks", account.deploy)
    return run("extend", "8h", stdin=answer) if answer else run("extend", "8h", "--yes")


def written(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "cdk.json").read_text())["context"]


def test_cluster_of_another_project_is_not_extended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stack = replace(deployed_stack(), tags={"trn:project": "theirs"})
    account = FakeStacks(existing={"TrnClusterStack": stack})
    ended = extend(monkeypatch, tmp_path, account, project_id="mine")
    assert (ended.exit_code, account.deployed) == (ExitCode.NOT_READY, [])
    assert "TrnClusterStack belongs to the project theirs" in ended.stderr
    assert written(tmp_path)["trn:ends"] == PLAN["ends"]


def test_extend_writes_and_deploys_the_new_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    account = FakeStacks()
    ended = extend(monkeypatch, tmp_path, account)
    assert (ended.exit_code, account.deployed) == (ExitCode.OK, [["TrnClusterStack"]])
    assert written(tmp_path)["trn:ends"] == "2099-01-01T08:00Z"
    assert account.ends == ["2099-01-01T08:00Z"]
    assert written(tmp_path)["trn:ami"] == PARAMETER


def test_extension_counts_from_the_duration_after_the_start_of_the_capacity_block(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    account = FakeStacks()
    block = {"capacity": "capacity-block", "reservation_id": "cr-0123456789abcdef0"}
    answer = extend(monkeypatch, tmp_path, account, ends="40h", **block)
    assert account.ends == ["2098-01-03T00:00Z"], answer.output
    assert "TrnClusterStack ends at 2098-01-02T16:00Z" in answer.output


def test_stacks_of_different_ages_get_the_latest_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    later = datetime(2098, 1, 1, tzinfo=UTC)
    stacks = {"TrnClusterStack": deployed_stack(), "PcsStack": deployed_stack(created=later)}
    extend(monkeypatch, tmp_path, FakeStacks(existing=stacks), ends="40h")
    assert written(tmp_path)["trn:ends"] == "2098-01-03T00:00Z"


def test_failed_deployment_reports_the_end_in_effect(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ended = extend(monkeypatch, tmp_path, FakeStacks(ended=ExitCode.NOT_READY))
    assert ended.exit_code == ExitCode.NOT_READY
    assert "According to the previous trn:ends, TrnClusterStack ends at 2099-01-01T00:00Z." in ended.stderr


@pytest.mark.parametrize(
    ("stacks", "asks"),
    [
        ({"TrnClusterStack": deployed_stack()}, "Write this to cdk.json, and deploy it?"),
        ({}, "Write this to cdk.json? [y/N]"),
    ],
    ids=["deployed", "not deployed"],
)
def test_question_names_the_deployment_only_if_there_is_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stacks: Mapping[str, DeployedStack], asks: str
) -> None:
    monkeypatch.setattr(extend_command, "is_interactive", lambda: True)
    ended = extend(monkeypatch, tmp_path, FakeStacks(existing=stacks), answer="n\n")
    assert (ended.exit_code, asks in ended.stdout) == (ExitCode.NOT_READY, True)


def test_unavailable_aws_writes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert extend(monkeypatch, tmp_path, FakeStacks(unavailable=True)).exit_code == ExitCode.UNKNOWN
    assert written(tmp_path)["trn:ends"] == PLAN["ends"]


def extend_elsewhere(monkeypatch: pytest.MonkeyPatch, plan: Plan, stacks: FakeStacks) -> Result:
    monkeypatch.setattr(extend_command, "AwsAccount", lambda _: stacks)
    monkeypatch.setattr(extend_command, "read_cluster_plan", lambda *_, **__: plan)
    monkeypatch.setattr(extend_command, "cluster_stack_name", lambda *_: "Training")
    return run("extend", "8h", "--cluster", plan.cluster_name, "--yes")


@pytest.mark.parametrize("context", [None, {}, {f"trn:{name}": value for name, value in PLAN.items()}])
def test_extend_of_another_app_shows_the_code_to_change(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, context: Mapping[str, str] | None
) -> None:
    if context is not None:
        (tmp_path / "cdk.json").write_text(json.dumps({"app": "true", "context": context}))
    created = datetime(2098, 1, 1, 4, 41, 38, 266889, tzinfo=UTC)
    plan = Plan.of(instance_type="trn1.32xlarge", region="us-east-1", cluster_name="training", ends="20h", nodes=2)
    account = FakeStacks(existing={"Training": deployed_stack(created=created)})
    ended = extend_elsewhere(monkeypatch, plan, account)
    assert (ended.exit_code, account.deployed) == (ExitCode.NOT_READY, [])
    assert ended.stdout.startswith("Training ends at 2098-01-02T00:41Z. With 2 x trn1.32xlarge running, 8 hours more")
    assert "end=PilotEnd.at(datetime(2098, 1, 2, 8, 42, tzinfo=UTC))" in ended.stdout
    if context is not None:
        assert json.loads((tmp_path / "cdk.json").read_text())["context"] == context

"""`trn status`: its one screen, and the exit code."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from click.testing import Result

from tests.cli.cluster.deployed_nodes import OUTSIDE, A, B
from tests.cli.cluster.test_nodes_command import BOOTING, VERIFIED, FakeNodes
from tests.cli.running import GOOD, run
from tests.core.test_clusters import FakeClusters, node, stack
from trainium_cli.cluster import status_command
from trainium_cli.exit_codes import ExitCode
from trainium_core.nodes.report import DeployedNodes, NodesNotCreatedError, NodesReport, NoFleetError
from trainium_core.stacks.events import StackEvent
from trainium_runtime.errors import UnavailableError
from trainium_wire.metric_sample import RecentMetrics
from trainium_wire.stack_record import StackRecord

END = datetime(2026, 12, 1, tzinfo=UTC)
MADE = StackEvent(kind="stack", logical_id="s", status="CREATE_COMPLETE", of_stack=True, time=END)


class FakeAccount(FakeClusters):
    """Has no bucket of records, and so no jobs."""

    def fleet_record(self, _stack: str) -> None:
        return None

    def stack_records(self, _stack: str) -> Sequence[StackRecord]:
        return ()


class FakeEvents:
    def stack_events(self, stack: str, *, after: str | None) -> Sequence[StackEvent]:  # noqa: ARG002
        return [MADE]


def answered_by(fake: Any, _region: str, **_: object) -> Any:
    return fake


def shown(
    monkeypatch: pytest.MonkeyPatch,
    nodes: DeployedNodes | Exception,
    *options: str,
    account: FakeAccount | None = None,
    outside: NodesReport | None = None,
) -> Result:
    account = account or FakeAccount(
        stacks=[stack("trn-pilot", ends=END)], nodes=[node(1, "trn-pilot"), node(2, "trn-pilot")]
    )
    fakes: dict[str, Any] = {
        "AwsClustersAccount": account,
        "AwsNodes": FakeNodes([nodes], outside=outside),
        "AwsStackEvents": FakeEvents(),
    }
    for name, fake in fakes.items():
        monkeypatch.setattr(status_command, name, partial(answered_by, fake))
    return run("status", *GOOD, *options)


def test_state_nodes_price_end_and_last_events_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = shown(monkeypatch, VERIFIED)
    assert ended.exit_code == ExitCode.OK, ended.output
    for text in (
        "running",
        "2 x trn1.32xlarge",
        "$43.00 per hour",
        "2026-12-01T00:00Z",
        "0 of 2 used in the last 24",
        "CREATE_COMPLETE",
    ):
        assert text in ended.stdout


def test_nodes_in_a_capacity_block_are_shown_as_prepaid(monkeypatch: pytest.MonkeyPatch) -> None:
    block = replace(node(1, "trn-pilot"), product="capacity-block")
    ended = shown(monkeypatch, VERIFIED, account=FakeAccount(stacks=[stack("trn-pilot")], nodes=[block]))
    assert "$0.00 per hour, for the nodes only; the Capacity Block is prepaid" in ended.stdout


def test_parts_of_a_rolled_back_stack_do_not_exist_and_are_not_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    class RolledBack(FakeAccount):
        def fleet_record(self, stack: str) -> None:
            raise NodesNotCreatedError(stack, "ROLLBACK_COMPLETE")

        def fleet(self, _stack: object) -> None:
            return None

    account = RolledBack(stacks=[stack("trn-pilot", status="ROLLBACK_COMPLETE", has_record=False)])
    monkeypatch.setattr(status_command, "AwsAbsences", partial(answered_by, account))
    ended = shown(monkeypatch, NodesNotCreatedError("TrnClusterStack", "ROLLBACK_COMPLETE"), account=account)
    assert ended.exit_code == ExitCode.NOT_READY
    assert "Not read" not in ended.stdout
    assert "its stack is in ROLLBACK_COMPLETE" in ended.stdout


def test_stack_of_training_jobs_alone_shows_its_events(monkeypatch: pytest.MonkeyPatch) -> None:
    account = FakeAccount(stacks=[stack("trn-pilot", name="SageMakerTrainingStack", status="ROLLBACK_COMPLETE")])
    asked = list[str]()

    class Events(FakeEvents):
        def stack_events(self, stack: str, *, after: str | None) -> Sequence[StackEvent]:
            asked.append(stack)
            return super().stack_events(stack, after=after)

    monkeypatch.setattr("tests.cli.cluster.test_status_command.FakeEvents", Events)
    ended = shown(monkeypatch, NoFleetError("none"), account=account)
    assert asked == ["SageMakerTrainingStack"]
    assert "Not read" not in ended.stdout


@pytest.mark.parametrize(
    ("stacks", "status", "is_healthy"),
    [
        ("sagemaker", "UPDATE_COMPLETE", True),
        ("sagemaker", "ROLLBACK_COMPLETE", False),
        (None, "UPDATE_COMPLETE", False),
    ],
)
def test_plan_without_nodes_is_healthy_without_nodes(
    monkeypatch: pytest.MonkeyPatch, stacks: str | None, status: str, is_healthy: bool
) -> None:
    account = FakeAccount(stacks=[stack("trn-pilot", name="trn-pilot-Training", engine="sagemaker", status=status)])
    options = ("-c", f"trn:stacks={stacks}") if stacks else ()
    ended = shown(monkeypatch, NoFleetError("none"), *options, account=account)
    assert (ended.exit_code == ExitCode.OK) is is_healthy, ended.output
    assert "Job" not in ended.stdout or stacks is None


def test_nodes_outside_the_stack_count_for_its_state(monkeypatch: pytest.MonkeyPatch) -> None:
    stacks, nodes = [stack("trn-pilot", name="EksJobsStack", engine="eks")], [node(1, "trn-pilot")]
    options = ("-c", "trn:stacks=eks", "-c", "trn:eks_cluster=prod")
    for outside, code in ((OUTSIDE, ExitCode.OK), (None, ExitCode.NOT_READY)):
        account = FakeAccount(stacks=stacks, nodes=nodes)
        ended = shown(monkeypatch, NoFleetError("none"), *options, account=account, outside=outside)
        assert ended.exit_code == code, ended.output
        assert ("verified" in ended.stdout) is (outside is not None)


def test_reason_for_missing_nodes_is_shown_with_next_command(monkeypatch: pytest.MonkeyPatch) -> None:
    asleep = FakeAccount(stacks=[stack("trn-pilot", asleep=True, has_nodes=True)])
    none = replace(VERIFIED, wanted=0, instances=())
    ended = shown(monkeypatch, none, account=asleep)
    assert "it was put to sleep; `trn wake` restores them" in ended.stdout
    assert ended.exit_code == ExitCode.OK
    printed = json.loads(shown(monkeypatch, none, "--json", account=asleep).stdout)
    assert printed["absence"]["remedy"] == "`trn wake` restores them"


def test_json_has_state_price_end_and_replacements(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = json.loads(shown(monkeypatch, VERIFIED, "--json").stdout)
    assert (printed["state"], printed["usd_per_hour"], printed["ends"]) == ("running", "43.0", "2026-12-01T00:00Z")
    assert printed["replacements"] == {"used": 0, "allowed": 2}


def test_unverified_nodes_exit_with_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, BOOTING).exit_code == ExitCode.NOT_READY


def test_unreadable_parts_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = shown(monkeypatch, UnavailableError("the permission s3:ListBucket is missing"))
    assert "nodes: the permission s3:ListBucket is missing" in ended.stdout
    assert ended.exit_code == ExitCode.NOT_READY


@pytest.mark.parametrize(("newest", "older"), [(2, False), (3, True)])
def test_nodes_of_an_older_launch_template_version_are_named_with_the_way_to_replace_them(
    monkeypatch: pytest.MonkeyPatch, newest: int, older: bool
) -> None:
    monkeypatch.setattr(FakeNodes, "newest_version", lambda *_: newest, raising=False)
    deployed = replace(VERIFIED, templates={node.instance_id: "lt-1:2" for node in VERIFIED.instances})
    printed = " ".join(shown(monkeypatch, deployed).stdout.split())
    assert ("2 of 2 nodes run version 2 of the launch template; the newest is version 3." in printed) is older
    assert ("raise trn:node_generation (in an app: node_generation), and deploy" in printed) is older


def test_utilization_of_the_nodes_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = {A: RecentMetrics(90, 40, 0, 0, 0), B: RecentMetrics(core_utilization=10)}
    line = "cores 50% (least: i-0bbbbbbbbbbbbbbbb, 10%), memory 40%, errors 0; 2 of 2 nodes report"
    assert line in " ".join(shown(monkeypatch, replace(VERIFIED, metrics=metrics)).stdout.split())
    assert "Utilization" not in shown(monkeypatch, VERIFIED).stdout

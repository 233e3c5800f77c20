"""`trn nodes`: the table, the checks of one node, JSON, and the exit code."""

import json
from dataclasses import replace

import pytest

from tests.cli.cluster.deployed_nodes import (
    BOOTING,
    LOST,
    MEMBERSHIP,
    OUTSIDE,
    VERIFIED,
    A,
    B,
    FakeNodes,
    deployed,
    stored,
)
from tests.cli.running import GOOD, run
from trainium_cli.cluster import nodes_command
from trainium_cli.exit_codes import ExitCode
from trainium_core.nodes.report import DeployedNodes, NodesNotCreatedError, NoFleetError
from trainium_wire.metric_sample import RecentMetrics


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> FakeNodes:
    fake = FakeNodes([VERIFIED])
    monkeypatch.setattr(nodes_command, "AwsNodes", lambda region, **_: fake if region == "us-west-2" else None)
    monkeypatch.setattr(nodes_command.time, "sleep", lambda _seconds: None)
    return fake


def test_verified_nodes_are_shown_with_exit_code_0(account: FakeNodes) -> None:
    ended = run("nodes", *GOOD)
    assert ended.exit_code == ExitCode.OK
    assert all(word in ended.stdout for word in (A, B, "usw2-az4", "10.42.0.4", "verified", "11-21 12:00:00Z"))
    assert "ready: 2 of 2 nodes verified" in ended.stdout
    assert account.requests == ["TrnClusterStack"]


def test_nodes_outside_the_stack_are_shown_by_the_same_table(account: FakeNodes) -> None:
    account.answers, account.outside = [NoFleetError("none")], OUTSIDE
    ended = run("nodes", *GOOD, "-c", "trn:stacks=eks", "-c", "trn:eks_cluster=prod")
    assert (ended.exit_code, account.requests) == (ExitCode.OK, ["EksJobsStack"])
    assert "ready: 2 of 2 nodes verified" in ended.stdout


def test_json_has_state_and_checks_of_each_node(account: FakeNodes) -> None:
    account.answers = [LOST]
    printed = json.loads(run("nodes", *GOOD, "--json").stdout)
    assert (printed["stack"], printed["state"], printed["membership"]) == (
        "TrnClusterStack",
        "waiting",
        MEMBERSHIP.version,
    )
    assert [node["state"] for node in printed["nodes"]] == ["verified", "failed"]
    assert printed["nodes"][1]["since"] == "2026-11-21T12:00:00+00:00"
    assert printed["nodes"][1]["checks"] == [
        {"name": "neuron-devices", "expected": "16", "found": "15 (missing: device 7)", "ok": False, "warning": ""}
    ]


def test_one_node_is_shown_with_every_check(account: FakeNodes) -> None:
    account.answers = [LOST]
    shown = run("nodes", *GOOD, "--node", B).stdout
    assert all(word in shown for word in (B, "is failed", "neuron-devices", "fail", "16", "15 (missing: device 7)"))
    assert "Check Outcome Expected Found" in " ".join(shown.split())
    assert A not in shown


def test_unknown_node_is_refused_with_the_nearest(account: FakeNodes) -> None:
    ended = run("nodes", *GOOD, "--node", A[:-1] + "b")
    assert account.requests
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert f"nearest: {A}" in ended.stderr


@pytest.mark.parametrize(
    ("answers", "code"), [([BOOTING, BOOTING, VERIFIED], ExitCode.OK), ([BOOTING, LOST], ExitCode.NOT_READY)]
)
def test_watch_ends_when_all_are_verified_or_one_is_lost(
    account: FakeNodes, answers: list[DeployedNodes | Exception | None], code: ExitCode
) -> None:
    account.answers = answers
    ended = run("nodes", *GOOD, "-c", "trn:node_recovery=off", "--watch")
    assert ended.exit_code == code
    assert len(account.requests) == len(answers)
    assert ended.stderr.splitlines()[0].startswith("waiting: 1 of 2 nodes verified")


def test_watch_of_sleeping_cluster_ends(account: FakeNodes) -> None:
    account.answers = [DeployedNodes(wanted=0, instances=(), records={}, membership=MEMBERSHIP)]
    ended = run("nodes", *GOOD, "--watch")
    assert ended.exit_code == ExitCode.NOT_READY
    assert "asleep" in ended.stdout


@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_missing_stack_is_reported_with_the_command_to_deploy_it(account: FakeNodes, as_json: tuple[str, ...]) -> None:
    account.answers = [None]
    ended = run("nodes", *GOOD, *as_json)
    assert ended.exit_code == ExitCode.NOT_READY
    assert "Stack TrnClusterStack does not exist in us-west-2: `trn deploy` creates it" in ended.output


def test_watch_of_one_node_is_refused(account: FakeNodes) -> None:
    assert run("nodes", *GOOD, "--watch", "--node", A).exit_code == ExitCode.BAD_INPUT
    assert account.requests == []


def test_watch_starts_before_the_group_exists(account: FakeNodes) -> None:
    account.answers = [NodesNotCreatedError("TrnClusterStack", "CREATE_IN_PROGRESS"), BOOTING, VERIFIED]
    ended = run("nodes", *GOOD, "--watch")
    assert ended.exit_code == ExitCode.OK
    assert ended.stderr.startswith("waiting: TrnClusterStack is being created, its nodes last\n")


def test_failed_nodes_are_explained_once_per_error(account: FakeNodes) -> None:
    account.answers = [deployed(stored(A, "failed", "no driver"), stored(B, "failed", "no EFA"))]
    shown = run("nodes", *GOOD).stdout
    assert shown.count("Cause: a node failed one of its checks") == 1
    assert shown.index("Cause:") < shown.index("Fix:   run `trn deploy` again")


def test_terminated_failed_nodes_are_shown_with_their_problem(account: FakeNodes) -> None:
    gone = stored("i-0cccccccccccccccc", "failed", "core 3 computes wrong numbers")
    account.answers = [deployed(stored(A), stored(B), gone)]
    shown = run("nodes", *GOOD).stdout
    assert "Former failed nodes (replaced in the last 24 hours: 0)" in shown
    assert "core 3 computes wrong numbers" in shown


def test_stack_without_group_is_not_watched(account: FakeNodes) -> None:
    account.answers = [NodesNotCreatedError("TrnClusterStack", "DELETE_IN_PROGRESS")]
    ended = run("nodes", *GOOD, "--watch")
    assert (ended.exit_code, len(account.requests)) == (ExitCode.UNKNOWN, 1)


def test_metrics_of_nodes_are_shown_and_missing_ones_are_unknown(account: FakeNodes) -> None:
    metrics = RecentMetrics(core_utilization=97.4, memory_utilization=40, execution_errors=2, ecc_uncorrected=1)
    account.answers = [replace(VERIFIED, metrics={A: metrics})]
    first, second = (line for line in run("nodes", *GOOD).stdout.splitlines() if line.startswith("i-"))
    assert "97% 40% 3" in " ".join(first.split())
    assert "unknown unknown unknown" in " ".join(second.split())
    shown = json.loads(run("nodes", *GOOD, "--json").stdout)["nodes"]
    assert [node["metrics"]["core_utilization"] for node in shown] == [97.4, None]

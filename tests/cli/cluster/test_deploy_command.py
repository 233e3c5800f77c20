"""`trn deploy`: its prompts and messages, and the arguments of the CDK CLI. Real deployments are in tests/deploy."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import Result

from tests.cli.cluster.deployed_nodes import VERIFIED
from tests.cli.running import run
from tests.core.fake_account import FakeAccount
from tests.core.fake_capacity import SCHEDULED_BLOCK, FakeCapacity
from tests.core.plans import RESERVATION
from trainium_cli.cdk_program import CdkRun
from trainium_cli.cluster import deploy_command, deployment, zone_attempts
from trainium_cli.exit_codes import ExitCode
from trainium_core.stacks.events import StackEvent

CDK = """
import json, pathlib, sys
words = sys.argv[1:]
with open("called", "a") as called:
    print(*words, file=called)
pathlib.Path("called_in").write_text(str(pathlib.Path.cwd()))
print("TrnClusterStack.Nodes = trn nodes", "broken app", sep="\\n")
if words[0] == "synth":
    role = {"Type": "AWS::IAM::Role", "Metadata": {"aws:cdk:path": "TrnClusterStack/Cluster/Fleet/Role/Resource"}}
    folder = pathlib.Path(words[words.index("--output") + 1])
    (folder / "TrnClusterStack.template.json").write_text(json.dumps({"Resources": {"Role": role}}))
code = pathlib.Path(f"code-{words[0]}")
sys.exit(int(code.read_text()) if code.exists() else 0)
"""
PLAN = {"trn:instance_type": "trn1.32xlarge", "trn:region": "us-west-2"}


class NoEvents:
    """A stack that does not exist in CloudFormation."""

    def last_event(self, stack: str) -> None:  # noqa: ARG002
        return None

    def stack_events(self, stack: str, *, after: str | None) -> Sequence[StackEvent]:  # noqa: ARG002
        return []


class NoNodes:
    def running_nodes(self, stack: str) -> int:  # noqa: ARG002
        return 0


@pytest.fixture(autouse=True)
def _in_a_folder_with_a_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cdk.json").write_text(json.dumps({"app": "none", "context": PLAN}))
    monkeypatch.setattr(deploy_command, "AwsAccount", lambda _: FakeAccount())
    monkeypatch.setattr(deployment, "AwsStackEvents", lambda _: NoEvents())
    monkeypatch.setattr(deployment, "AwsNodeChanges", lambda _: NoNodes())
    monkeypatch.setattr(deployment, "AwsPrices", lambda _: None)


@pytest.fixture
def cdk(tmp_path: Path) -> Path:
    """A CDK CLI in the project. It records its arguments and folder, and exits with the number in `code-COMMAND`."""
    folder = tmp_path / "node_modules" / ".bin"
    folder.mkdir(parents=True)
    program = folder / "cdk"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {tmp_path}/cdk.py "$@"\n')
    (tmp_path / "cdk.py").write_text(CDK)
    program.chmod(0o755)
    return tmp_path / "called"


def deploy(*options: str, typed: str | None = None) -> Result:
    return run("deploy", *options, stdin=typed)


def test_cdk_cli_gets_the_stacks_and_overrides(cdk: Path) -> None:
    ended = deploy("--yes", "-c", "trn:nodes=1")
    assert ended.exit_code == ExitCode.OK, ended.output
    called = cdk.read_text()
    assert called.startswith("deploy TrnClusterStack --context trn:nodes=1 --require-approval never ")


def test_cdk_cli_runs_in_the_folder_of_cdk_json(cdk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert deploy("--yes", "--file", "../cdk.json").exit_code == ExitCode.OK
    assert (tmp_path / "called_in").read_text().strip() == str(tmp_path)
    assert cdk.exists()


@pytest.mark.parametrize(
    ("account", "code"),
    [(FakeAccount(limit=0), ExitCode.NOT_READY), (FakeAccount(unavailable={"quota"}), ExitCode.UNKNOWN)],
)
def test_account_that_is_not_ready_stops_the_deployment(
    cdk: Path, monkeypatch: pytest.MonkeyPatch, account: FakeAccount, code: ExitCode
) -> None:
    monkeypatch.setattr(deploy_command, "AwsAccount", lambda _: account)
    ended = deploy("--yes")
    assert ended.exit_code == code
    assert "Nothing was deployed." in ended.stderr
    assert not cdk.exists()


@pytest.mark.parametrize(("typed", "commands"), [("y\n", ["synth", "deploy"]), ("n\n", ["synth"])], ids=["yes", "no"])
def test_terminal_shows_nodes_price_and_end_and_prompts_once(
    cdk: Path, monkeypatch: pytest.MonkeyPatch, typed: str, commands: Sequence[str]
) -> None:
    monkeypatch.setattr(deploy_command, "is_interactive", lambda: True)
    ended = deploy("-c", "trn:ends=5d", typed=typed)
    assert ended.exit_code == (ExitCode.OK if typed == "y\n" else ExitCode.NOT_READY), ended.output
    called = [line.split() for line in cdk.read_text().splitlines()]
    assert [words[0] for words in called] == commands
    assert all(words[1:4] == ["TrnClusterStack", "--context", "trn:ends=5d"] for words in called)
    synthesized = called[0][called[0].index("--output") + 1]
    assert all(words[words.index("--app") + 1] == synthesized for words in called[1:])
    for text in (
        "TrnClusterStack: new",
        "new roles: Cluster/Fleet/Role;",
        "1 x trn1.32xlarge, on-demand",
        "per hour",
        "5d after the first deployment",
        "Deploy it?",
    ):
        assert text in ended.stdout
    assert len(ended.stdout.splitlines()) < 24


def test_yes_shows_the_price_and_no_passed_checks(cdk: Path) -> None:
    ended = deploy("--yes", "-c", "trn:ends=5d")
    assert ended.exit_code == ExitCode.OK, ended.output
    assert cdk.read_text().startswith("deploy ")
    for text in ("TrnClusterStack: new", "per hour", "5d after the first deployment"):
        assert text in ended.stdout
    assert "Deploy it?" not in ended.stdout
    assert " pass " not in ended.stdout


@pytest.mark.parametrize(
    ("own", "options", "code", "message"),
    [
        (None, (), ExitCode.NOT_READY, "belongs to the project theirs, not to that of this plan (no ID)"),
        ("mine", (), ExitCode.NOT_READY, "belongs to the project theirs, not to that of this plan (mine)"),
        ("mine", ("--cluster", "trn-pilot"), ExitCode.OK, "Deployed."),
        ("mine", ("--cluster", "other"), ExitCode.BAD_INPUT, "allowed: trn-pilot"),
        ("theirs", (), ExitCode.OK, "Deployed."),
    ],
)
def test_cluster_of_another_project_is_changed_only_by_its_name(
    cdk: Path, monkeypatch: pytest.MonkeyPatch, own: str | None, options: tuple[str, ...], code: ExitCode, message: str
) -> None:
    stacks = {"CDKToolkit": "CREATE_COMPLETE", "TrnClusterStack": "CREATE_COMPLETE"}
    account = FakeAccount(stack_status=stacks, stack_tags={"trn:project": "theirs"})
    monkeypatch.setattr(deploy_command, "AwsAccount", lambda _: account)
    context = () if own is None else ("-c", f"trn:project_id={own}")
    ended = deploy("--yes", *context, *options)
    assert ended.exit_code == code, ended.output
    assert message in " ".join(ended.output.split())
    assert cdk.exists() == (code == ExitCode.OK)


def test_deployment_before_its_capacity_block_says_when_nodes_launch(
    cdk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cdk.parent.is_dir()
    begins = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(days=10)
    capacity = FakeCapacity(account_reservations=[replace(SCHEDULED_BLOCK, start=begins)])
    nodes = replace(VERIFIED, wanted=0, instances=(), records={}, membership=None)
    monkeypatch.setattr(deployment, "AwsNodes", lambda _: SimpleNamespace(nodes=lambda _stack: nodes))
    monkeypatch.setattr(deployment, "AwsCapacity", lambda _: capacity)
    block = ("-c", "trn:capacity=capacity-block", "-c", f"trn:reservation_id={RESERVATION}")
    ended = deploy("--yes", *block, "--suppress", "reservation")
    when = begins.strftime("%Y-%m-%dT%H:%MZ")
    assert f"none yet: they launch when {RESERVATION} begins, at {when}" in " ".join(ended.stdout.split()), ended.output


@pytest.mark.parametrize(
    ("failing", "message"),
    [("synth", "the CDK app could not be synthesized.\nTrn"), ("diff", "could not show the IAM changes")],
)
def test_unknown_changes_stop_the_update(
    cdk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str, message: str
) -> None:
    class Events(NoEvents):
        def last_event(self, stack: str) -> Any:  # noqa: ARG002
            return "event-1"

    monkeypatch.setattr(deploy_command, "is_interactive", lambda: True)
    monkeypatch.setattr(deployment, "AwsStackEvents", lambda _: Events())
    (tmp_path / f"code-{failing}").write_text("1")
    ended = deploy()
    assert (ended.exit_code, cdk.read_text().splitlines()[-1].split()[0]) == (ExitCode.NOT_READY, failing)
    assert message in ended.stderr


def test_missing_cdk_cli_is_reported_with_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    ended = deploy("--yes")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "trn doctor --fix" in ended.stderr


@pytest.mark.parametrize(
    ("statuses", "message", "quoted"),
    [
        (
            ["REVIEW_IN_PROGRESS", "CREATE_IN_PROGRESS"],
            "is still in CREATE_IN_PROGRESS",
            False,
        ),
        (["REVIEW_IN_PROGRESS"], "ended before everything was deployed", True),
    ],
)
@pytest.mark.usefixtures("cdk")
def test_state_is_shown_when_the_cdk_cli_ends_before_the_stack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statuses: Sequence[str], message: str, quoted: bool
) -> None:
    class Events(NoEvents):
        def stack_events(self, stack: str, *, after: str | None) -> Sequence[StackEvent]:  # noqa: ARG002
            kind = "AWS::CloudFormation::Stack"
            return [StackEvent(kind=kind, logical_id=stack, status=status, of_stack=True) for status in statuses]

    monkeypatch.setattr(deployment, "AwsStackEvents", lambda _: Events())
    (tmp_path / "code-deploy").write_text("1")
    ended = deploy("--yes")
    assert ended.exit_code == ExitCode.NOT_READY
    assert message in ended.stderr
    assert ("broken app" in ended.stderr) == quoted


NO_CAPACITY = "We currently do not have sufficient trn1.32xlarge capacity in the Availability Zone you requested."


class EventsOfLostAttempts:
    """The creation of a stack fails, for these reasons one after another, and is rolled back."""

    def __init__(self, *reasons: str, status: str = "ROLLBACK_COMPLETE") -> None:
        self._reasons, self._status, self._seen = reasons, status, 0

    def last_event(self, stack: str) -> str | None:  # noqa: ARG002
        return f"event-{self._seen}" if self._seen else None

    def stack_events(self, stack: str, *, after: str | None) -> Sequence[StackEvent]:
        assert after == self.last_event(stack)
        self._seen += 1
        reason = self._reasons[self._seen - 1]
        return [
            StackEvent(kind="Custom::TrnFleetReadiness", logical_id="Fleet", status="CREATE_FAILED", reason=reason),
            StackEvent(kind="AWS::CloudFormation::Stack", logical_id=stack, status=self._status, of_stack=True),
        ]


@pytest.fixture
def _zones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zone_attempts, "AwsNetwork", lambda _: FakeAccount(zones=("usw2-az4", "usw2-az1")))
    monkeypatch.setattr(zone_attempts, "AwsPrices", lambda _: None)


@pytest.mark.usefixtures("_zones")
@pytest.mark.parametrize("reason", [NO_CAPACITY, "node i-0: neuron-ls shows 15 of 16 Neuron devices"])
def test_failure_in_every_zone_leaves_cdk_json_unchanged(
    cdk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    before = (tmp_path / "cdk.json").read_text()
    monkeypatch.setattr(deployment, "AwsStackEvents", lambda _: EventsOfLostAttempts(NO_CAPACITY, reason))
    (tmp_path / "code-deploy").write_text("1")
    ended = deploy("--yes")
    assert ended.exit_code == ExitCode.NOT_READY
    assert len(cdk.read_text().splitlines()) == 2
    assert "usw2-az1 has no capacity for 1 x trn1.32xlarge" in ended.stdout
    assert "Trying usw2-az4, at $" in ended.stdout
    assert reason in ended.stderr
    assert ("all without capacity: usw2-az1, usw2-az4." in ended.stderr) == (reason == NO_CAPACITY)
    assert ("run `trn capacity`" in ended.stderr) == (reason == NO_CAPACITY)
    assert (tmp_path / "cdk.json").read_text() == before


@pytest.mark.usefixtures("_zones")
@pytest.mark.parametrize(
    ("options", "status", "says"),
    [
        (("-c", "trn:availability_zone_id=usw2-az4"), "ROLLBACK_COMPLETE", "trn:availability_zone_id specifies"),
        (("-c", "trn:region=us-west-2"), "ROLLBACK_COMPLETE", "cannot store a zone for -c trn:region=us-west-2"),
        ((), "UPDATE_ROLLBACK_COMPLETE", "the stack is as it was before the deployment"),
    ],
)
def test_fixed_zone_and_zone_of_a_running_cluster_stay(
    cdk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], status: str, says: str
) -> None:
    before = (tmp_path / "cdk.json").read_text()
    monkeypatch.setattr(deployment, "AwsStackEvents", lambda _: EventsOfLostAttempts(NO_CAPACITY, status=status))
    (tmp_path / "code-deploy").write_text("1")
    ended = deploy("--yes", *options)
    assert ended.exit_code == ExitCode.NOT_READY
    assert len(cdk.read_text().splitlines()) == 1
    assert says in ended.stderr
    assert (tmp_path / "cdk.json").read_text() == before


@pytest.mark.parametrize(("typed", "code"), [("y\n", ExitCode.OK), ("n\n", ExitCode.NOT_READY)])
def test_missing_bootstrap_alone_is_a_part_of_the_one_question(
    cdk: Path, monkeypatch: pytest.MonkeyPatch, typed: str, code: ExitCode
) -> None:
    monkeypatch.setattr(deploy_command, "AwsAccount", lambda _: FakeAccount(bootstrap_version=None))
    monkeypatch.setattr(deploy_command, "is_interactive", lambda: True)
    ended = deploy(typed=typed)
    assert ended.exit_code == code
    assert "Bootstrap  `cdk bootstrap aws://123456789012/us-west-2` once" in ended.stdout
    assert "AdministratorAccess" in ended.stdout
    called = [line for line in cdk.read_text().splitlines() if line.startswith("bootstrap")]
    assert len(called) == (code is ExitCode.OK)
    assert all(line.startswith("bootstrap aws://123456789012/us-west-2 --app ") for line in called)


def test_missing_bootstrap_of_another_qualifier_is_left_to_its_owner(
    cdk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the stack CDKToolkit, `cdk bootstrap` would replace the roles of all other apps."""
    monkeypatch.setattr(deploy_command, "AwsAccount", lambda _: FakeAccount(bootstrap_version="21"))
    monkeypatch.setattr(deploy_command, "is_interactive", lambda: True)
    ended = deploy("-c", "@aws-cdk/core:bootstrapQualifier=mlteam", typed="y\n")
    assert ended.exit_code == ExitCode.NOT_READY
    assert "/cdk-bootstrap/mlteam/version does not exist" in " ".join(ended.stdout.split())
    assert not cdk.exists()


def test_interrupted_bootstrap_says_that_it_may_continue(cdk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def progress(run: CdkRun, *, original: Callable[[CdkRun], int] = CdkRun.with_progress) -> int:
        if original(run) == 0 and cdk.read_text().splitlines()[-1].startswith("bootstrap"):
            raise KeyboardInterrupt
        return 0

    monkeypatch.setattr(CdkRun, "with_progress", progress)
    monkeypatch.setattr(deploy_command, "AwsAccount", lambda _: FakeAccount(bootstrap_version=None))
    monkeypatch.setattr(deploy_command, "is_interactive", lambda: True)
    ended = deploy(typed="y\n")
    assert ended.exit_code == ExitCode.INTERRUPTED
    assert "CloudFormation may still deploy the CDK bootstrap." in ended.stderr

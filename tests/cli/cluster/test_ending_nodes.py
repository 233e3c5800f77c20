"""What `trn deploy` shows about nodes that would end, and when it continues. A real deployment is in tests/deploy."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click
import pytest

from trainium_cli.cluster.deployment import ask_about_ending_nodes
from trainium_cli.exit_codes import CliError, ExitCode
from trainium_core.stacks.change_sets import ResourceChange
from trainium_runtime.errors import UnavailableError

GROUP = "AWS::AutoScaling::AutoScalingGroup"


@dataclass
class FakeChangeSets:
    """A stack with a number of running nodes, and the effect of its change set."""

    running: int = 2
    found: Sequence[ResourceChange] = (ResourceChange(kind=GROUP, action="Remove"),)
    silent: bool = False
    deleted: list[str] = field(default_factory=list[str])

    def running_nodes(self, stack: str) -> int:
        if self.silent:
            raise UnavailableError(f"no answer about {stack}")
        return self.running

    def changes(self, stack: str, change_set: str) -> Sequence[ResourceChange]:
        assert (stack, change_set) == ("Stack", "trn-deploy-preview")
        return self.found

    def delete_change_set(self, stack: str, change_set: str) -> None:
        self.deleted.append(f"{stack}/{change_set}")


@pytest.fixture
def cdk(tmp_path: Path) -> Path:
    program = tmp_path / "cdk"
    program.write_text('#!/bin/sh\necho "$@" > called\nexit $(cat code 2>/dev/null || echo 0)\n')
    program.chmod(0o755)
    return program


def confirm(account: FakeChangeSets, cdk: Path, *, yes: bool = True, replace: bool = False) -> None:
    ask_about_ending_nodes(
        account,
        "Stack",
        construct_id="Id",
        program=str(cdk),
        context=["--context", "a=b"],
        folder=cdk.parent,
        yes=yes,
        replace=replace,
    )


def test_script_gets_a_separate_exit_code(cdk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    account = FakeChangeSets()
    with pytest.raises(CliError, match="`trn deploy --replace-nodes`") as refused:
        confirm(account, cdk)
    assert refused.value.exit_code is ExitCode.NOT_READY
    shown = capsys.readouterr().err
    assert "2 of 2 running nodes would be terminated and lose the data on their disks: their Auto Scaling" in shown
    assert account.deleted == ["Stack/trn-deploy-preview"]
    called = (cdk.parent / "called").read_text()
    assert called.startswith("deploy Id --context a=b --method prepare-change-set --change-set-name")


def test_terminal_is_prompted(cdk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click, "confirm", lambda _: True)
    confirm(FakeChangeSets(), cdk, yes=False)
    monkeypatch.setattr(click, "confirm", lambda _: False)
    with pytest.raises(CliError):
        confirm(FakeChangeSets(), cdk, yes=False)


def test_nodes_that_stay_need_no_prompt(cdk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    confirm(FakeChangeSets(found=()), cdk, yes=False)
    assert "This deployment does not terminate running nodes. Running: 2." in capsys.readouterr().out


def test_without_running_nodes_no_change_set_is_made(cdk: Path) -> None:
    confirm(FakeChangeSets(running=0), cdk)
    assert not (cdk.parent / "called").exists()


def test_unknown_number_of_ending_nodes_stops_the_deployment(cdk: Path) -> None:
    with pytest.raises(CliError, match="Could not determine how many running nodes would be terminated") as unknown:
        confirm(FakeChangeSets(silent=True), cdk)
    assert unknown.value.exit_code is ExitCode.UNKNOWN
    (cdk.parent / "code").write_text("1")
    with pytest.raises(CliError, match="the change set could not be created"):
        confirm(FakeChangeSets(), cdk)

"""Commands are shown as they are typed, and the CDK CLI's words are condensed without losing a failure."""

import os
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from demo.commands import CommandFailedError, Commands

EVENT = "TrnClusterStack | {done:>2}/40 | 11:04:17 AM | {status:<23} | AWS::EC2::VPC | Cluster/Vpc (ClusterVpc1) {why}"


@pytest.fixture
def console() -> Console:
    return Console(file=StringIO(), width=120, record=True)


@pytest.fixture
def cdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a `cdk` that prints the file `said` beside it and ends with the code in `code`."""
    script = tmp_path / "cdk"
    script.write_text(
        f'#!/bin/sh\necho "$@" > "{tmp_path}/asked"\ncat "{tmp_path}/said"\nexit $(cat "{tmp_path}/code")\n'
    )
    script.chmod(0o755)
    (tmp_path / "code").write_text("0")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def say(cdk: Path, *lines: str) -> None:
    (cdk / "said").write_text("\n".join(lines) + "\n")


def deploy(console: Console, cdk: Path) -> str:
    Commands(console).cdk("deploy", "TrnClusterStack", quiet_options=("--force",), cwd=cdk)
    return console.export_text()


def test_a_command_is_shown_as_it_is_typed(console: Console, cdk: Path) -> None:
    say(cdk, "")
    assert "$ cdk deploy TrnClusterStack\n" in deploy(console, cdk)


def test_options_that_only_spare_questions_are_passed_and_not_shown(console: Console, cdk: Path) -> None:
    say(cdk, "")
    assert "--force" not in deploy(console, cdk)
    assert "deploy TrnClusterStack --force" in (cdk / "asked").read_text()


def test_many_events_become_few_lines(console: Console, cdk: Path) -> None:
    say(cdk, *(EVENT.format(done=n, status="CREATE_COMPLETE", why="") for n in range(1, 41)))
    counted = [line for line in deploy(console, cdk).splitlines() if "of 40 done" in line]
    assert counted == [f"  {n} of 40 done, last: create AWS::EC2::VPC" for n in (12, 24, 36)]


@pytest.mark.parametrize("outcome", ["✅  TrnClusterStack", "❌  TrnClusterStack failed", "✨  Synthesis time: 1s"])
def test_an_outcome_is_shown(console: Console, cdk: Path, outcome: str) -> None:
    say(cdk, outcome)
    assert outcome in deploy(console, cdk)


def test_a_resource_that_failed_is_shown_with_its_reason(console: Console, cdk: Path) -> None:
    say(cdk, EVENT.format(done=1, status="CREATE_FAILED", why="the reason"))
    assert "CREATE_FAILED Cluster/Vpc (ClusterVpc1) the reason" in deploy(console, cdk)


def test_a_failing_command_ends_the_demo_with_all_it_said(console: Console, cdk: Path) -> None:
    say(cdk, "some words", "more words")
    (cdk / "code").write_text("3")
    with pytest.raises(CommandFailedError, match="some words\nmore words\ncdk ended with exit code 3"):
        deploy(console, cdk)

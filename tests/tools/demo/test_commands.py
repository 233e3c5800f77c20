"""Commands are shown as typed, and the output of the CDK CLI is condensed without losing a failure."""

import os
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from tools.demo.commands import CommandFailedError, Commands
from trainium_cli.terminal import Screen

EVENT = "TrnClusterStack | {done:>2}/40 | 11:04:17 AM | {status:<23} | AWS::EC2::VPC | Cluster/Vpc (ClusterVpc1) {why}"


@pytest.fixture
def cdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a `cdk` that prints the file `output` beside it and ends with the code in `code`."""
    script = tmp_path / "cdk"
    script.write_text(
        f'#!/bin/sh\necho "$@" > "{tmp_path}/arguments"\ncat "{tmp_path}/output"\nexit $(cat "{tmp_path}/code")\n'
    )
    script.chmod(0o755)
    (tmp_path / "code").write_text("0")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def prepare_output(cdk: Path, *lines: str) -> None:
    (cdk / "output").write_text("\n".join(lines) + "\n")


def deploy(cdk: Path) -> str:
    with redirect_stdout(StringIO()) as output:
        Commands(Screen(width=120, has_colours=False)).cdk(
            "deploy", "TrnClusterStack", quiet_options=("--force",), cwd=cdk
        )
    return output.getvalue()


def test_options_that_avoid_prompts_are_passed_and_not_shown(cdk: Path) -> None:
    prepare_output(cdk, "")
    assert "--force" not in deploy(cdk)
    assert "deploy TrnClusterStack --force" in (cdk / "arguments").read_text()


def test_many_events_become_few_lines(cdk: Path) -> None:
    prepare_output(cdk, *(EVENT.format(done=n, status="CREATE_COMPLETE", why="") for n in range(1, 41)))
    counted = [line for line in deploy(cdk).splitlines() if "of 40 done" in line]
    assert counted == [f"  {n} of 40 done, last: create AWS::EC2::VPC" for n in (12, 24, 36)]


def test_failed_resource_is_shown_with_its_reason(cdk: Path) -> None:
    prepare_output(cdk, EVENT.format(done=1, status="CREATE_FAILED", why="the reason"))
    assert "CREATE_FAILED Cluster/Vpc (ClusterVpc1) the reason" in deploy(cdk)


def test_failing_command_ends_the_demo_with_its_output(cdk: Path) -> None:
    prepare_output(cdk, "some words", "more words")
    (cdk / "code").write_text("3")
    with pytest.raises(CommandFailedError, match="some words\nmore words\ncdk ended with exit code 3"):
        deploy(cdk)

"""`trn doctor`: missing parts, and the exit code."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.running import GOOD, run
from trainium_cli.exit_codes import ExitCode
from trainium_cli.setup import doctor_command
from trainium_core.identity.caller import Identity
from trainium_runtime.errors import NotSignedInError, OfflineError, UnavailableError


@dataclass
class FakeAccount:
    """An account.

    Attributes:
        unavailable: Why the identity cannot be read; None if it can.
        bootstrap: The version of the bootstrap stack; None without one.
    """

    unavailable: UnavailableError | None = None
    bootstrap: str | None = None

    def parameter(self, _name: str) -> str | None:
        return self.bootstrap

    def identity(self) -> Identity:
        if self.unavailable:
            raise self.unavailable
        return Identity(account="123456789012", arn="arn:aws:iam::123456789012:user/someone")


def diagnosed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, account: FakeAccount) -> dict[str, dict[str, str]]:
    def account_in(_region: str) -> FakeAccount:
        return account

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    monkeypatch.setattr(doctor_command, "AwsAccount", account_in)
    ended = run("doctor", *GOOD, "--json")
    assert ended.exit_code == ExitCode.NOT_READY
    return {one["what"]: one for one in json.loads(ended.stdout)}


def test_missing_programs_are_named_with_a_fix(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = diagnosed(monkeypatch, tmp_path, FakeAccount())
    outcomes = {what: one["outcome"] for what, one in found.items()}
    assert outcomes == {
        "Python": "pass",
        "Node": "fail",
        "CDK CLI": "fail",
        "AWS CLI": "warn",
        "Session Manager": "warn",
        "credentials": "pass",
        "bootstrap": "fail",
    }
    assert found["bootstrap"]["fix"] == "run: cdk bootstrap aws://123456789012/us-west-2"


def test_region_option_takes_precedence_over_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    regions: list[str] = []

    def account_in(region: str) -> FakeAccount:
        regions.append(region)
        return FakeAccount()

    monkeypatch.setattr(doctor_command, "AwsAccount", account_in)
    run("doctor", *GOOD, "--region", "us-east-1")
    assert regions == ["us-east-1"]


def test_cluster_option_is_refused() -> None:
    ended = run("doctor", *GOOD, "--cluster", "other")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "No such option" in ended.stderr
    assert "--cluster" in ended.stderr


@pytest.mark.parametrize(
    ("error", "outcome", "remedy"),
    [
        (NotSignedInError("Unable to locate credentials"), "fail", "aws sso login"),
        (OfflineError("Could not connect to the endpoint URL"), "unknown", "HTTPS_PROXY"),
    ],
    ids=["no credentials", "offline"],
)
def test_account_that_cannot_be_read_makes_bootstrap_unknown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: UnavailableError, outcome: str, remedy: str
) -> None:
    found = diagnosed(monkeypatch, tmp_path, FakeAccount(unavailable=error))
    assert found["credentials"]["outcome"] == outcome
    assert remedy in found["credentials"]["found"]
    assert found["bootstrap"]["outcome"] == "unknown"


@pytest.mark.parametrize(("version", "outcome"), [("v24.1.0", "pass"), ("v18.20.0", "warn")])
def test_node_release_is_compared_with_supported_ones(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, outcome: str
) -> None:
    node = tmp_path / "node"
    node.write_text(f"#!/bin/sh\necho {version}\n")
    node.chmod(0o755)
    assert diagnosed(monkeypatch, tmp_path, FakeAccount())["Node"]["outcome"] == outcome

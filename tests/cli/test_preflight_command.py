"""`trn preflight`: the table, the verdict and the exit code. The checks themselves are tested in tests/core."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import GOOD, run, run_program
from tests.core.fake_account import FakeAccount
from trainium_cli import preflight_command
from trainium_cli.exit_codes import ExitCode

READY = FakeAccount()
NOT_READY = FakeAccount(limit=0)
SILENT = FakeAccount(silent={"quota"})
BOTH = FakeAccount(silent={"bootstrap"}, limit=0)


@pytest.fixture(autouse=True)
def _in_an_empty_folder_on_a_wide_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")


def ask(monkeypatch: pytest.MonkeyPatch, account: FakeAccount, *arguments: str) -> Any:
    regions: list[str] = []

    def account_in(region: str) -> FakeAccount:
        regions.append(region)
        return account

    monkeypatch.setattr(preflight_command, "AwsAccount", account_in)
    ended = run("preflight", *GOOD, *arguments)
    assert regions == ["us-west-2"]
    return ended


@pytest.mark.parametrize(
    ("account", "code", "verdict"),
    [
        (READY, ExitCode.OK, "ready: 1 x trn1.32xlarge in us-west-2 (6 pass)"),
        (NOT_READY, ExitCode.NOT_READY, "not ready: 1 x trn1.32xlarge in us-west-2 (5 pass, 1 fail)"),
        (SILENT, ExitCode.COULD_NOT_TELL, "could not tell: 1 x trn1.32xlarge in us-west-2 (5 pass, 1 unknown)"),
        (BOTH, ExitCode.NOT_READY, "not ready: 1 x trn1.32xlarge in us-west-2 (4 pass, 1 fail, 1 unknown)"),
    ],
)
def test_the_last_line_is_the_verdict_and_the_exit_code_says_the_same(
    monkeypatch: pytest.MonkeyPatch, account: FakeAccount, code: ExitCode, verdict: str
) -> None:
    ended = ask(monkeypatch, account)
    assert ended.exit_code == code
    assert ended.stdout.splitlines()[-1] == verdict


def test_every_finding_is_shown_with_its_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = ask(monkeypatch, NOT_READY).stdout
    assert all(check in shown for check in ("identity", "quota", "offering", "image", "bootstrap", "stack", "cost"))
    assert "-> ask Service Quotas for 128 or more" in shown


@pytest.mark.parametrize(
    ("account", "code", "verdict"),
    [
        (READY, ExitCode.OK, "ready"),
        (NOT_READY, ExitCode.NOT_READY, "not ready"),
        (SILENT, ExitCode.COULD_NOT_TELL, "could not tell"),
    ],
)
def test_json_says_the_same(
    monkeypatch: pytest.MonkeyPatch, account: FakeAccount, code: ExitCode, verdict: str
) -> None:
    ended = ask(monkeypatch, account, "--json")
    told = json.loads(ended.stdout)
    assert (ended.exit_code, told["verdict"]) == (code, verdict)
    assert all(set(finding) == {"check", "outcome", "found", "needed", "fix", "suppressed"} for finding in told["findings"])


def test_a_bad_plan_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight_command, "AwsAccount", None)
    assert run("preflight", *GOOD, "-c", "trn:nodes=0").exit_code == ExitCode.BAD_INPUT


def test_without_credentials_it_could_not_tell() -> None:
    nowhere = {"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"}
    keys = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_PROFILE": "none-such"}
    ended = run_program("preflight", *GOOD, AWS_EC2_METADATA_DISABLED="true", **nowhere, **keys)
    assert ended.returncode == ExitCode.COULD_NOT_TELL
    assert "none-such" in ended.stdout
    assert "\x1b" not in ended.stdout
    assert ended.stderr == ""

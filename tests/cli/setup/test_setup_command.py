"""`trn setup`: the CDK CLI that it installs, and what it refuses, with stand-ins for Node.js and npm."""

import json
import re
import sys
from pathlib import Path

import pytest

from tests.cli.running import run
from trainium_cli.exit_codes import ExitCode
from trainium_cli.setup import setup_command
from trainium_core.facts import facts

ROOT = Path(__file__).parents[3]
CDK_CLI = facts()["nodejs"]["cdk_cli"]


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a virtual environment without Node.js. PATH has only the folder `machine`."""
    programs = tmp_path / "venv" / "bin"
    programs.mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    monkeypatch.setattr(sys, "executable", str(programs / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "machine"))
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
    assert facts()["nodejs"]["wheel"] in (ROOT / "requirements/node.txt").read_text().splitlines()
    assert [str(major) for major in facts()["nodejs"]["majors"]] == re.findall("[0-9]+", package["engines"]["node"])


def test_supported_node_is_kept_and_the_cdk_cli_installed(environment: Path) -> None:
    put_node(environment / "machine", "v24.1.0")
    ended = run("setup")
    assert ended.exit_code == ExitCode.OK, ended.output
    prefix = environment / "venv"
    expected = f"install --global --ignore-scripts --no-fund --prefix {prefix} {CDK_CLI}"
    assert (environment / "machine" / "called").read_text().strip() == expected
    assert f"CDK CLI: {prefix / 'bin' / 'cdk'}" in ended.stdout


@pytest.mark.usefixtures("environment")
def test_system_python_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "base_prefix", sys.prefix)
    ended = run("setup")
    assert (ended.exit_code, "python3 -m venv" in ended.stderr) == (ExitCode.BAD_INPUT, True)


@pytest.mark.parametrize("version", ["v18.20.0", "nonsense"])
def test_unsupported_node_is_not_used(environment: Path, version: str) -> None:
    put_node(environment / "machine", version)
    assert setup_command.supported_node() is None


def test_failed_installer_is_quoted(environment: Path) -> None:
    put_node(environment / "machine", "v24.1.0")
    put_program(environment / "machine", "npm", "echo 'npm error ENOTFOUND' >&2; exit 1")
    ended = run("setup")
    assert (ended.exit_code, "npm error ENOTFOUND" in ended.stderr) == (ExitCode.NOT_READY, True)

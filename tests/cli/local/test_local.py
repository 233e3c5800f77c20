"""`trn local` as a user types it, each command as a separate process."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.forked import run_trn

Trn = Callable[..., subprocess.CompletedProcess[str]]


def trn_in(folder: Path) -> Trn:
    def trn(*arguments: str, cwd: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"TRN_LOCAL_HOME": str(folder), "COLUMNS": "200"} | more
        command = ["local", *arguments]
        return run_trn(command, folder=cwd or Path.cwd(), environment=environment, stderr_apart=True)

    return trn


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trn]:
    trn = trn_in(tmp_path_factory.mktemp("running"))
    started = trn("start", "--port", "0", "--region", "us-east-2", "--quota", "L-2C3B7624=384")
    assert started.returncode == 0, started.stderr
    yield trn
    trn("stop")


@pytest.fixture
def idle(tmp_path: Path) -> Trn:
    return trn_in(tmp_path)


def test_status_shows_the_settings(running: Trn) -> None:
    shown = running("status")
    assert shown.returncode == 0
    assert "us-east-2" in shown.stdout
    assert "L-2C3B7624   384 vCPU  Running On-Demand Trn instances" in shown.stdout


def test_json_status_is_the_health_of_the_server(running: Trn) -> None:
    assert json.loads(running("status", "--json").stdout)["quotas"]["L-2C3B7624"] == 384


def test_status_without_server_exits_with_3(idle: Trn) -> None:
    shown = idle("status")
    assert (shown.returncode, shown.stdout) == (3, "The embedded AWS is not running. Start it with: trn local start\n")


def test_start_says_one_line(running: Trn) -> None:
    again = running("start")
    endpoint = json.loads(running("status", "--json").stdout)["endpoint"]
    line = f"The embedded AWS is already running at {endpoint}, in us-east-2. Use it with: trn local -- COMMAND"
    assert (again.returncode, " ".join(again.stdout.split())) == (0, line)


def test_second_start_with_other_settings_is_refused(running: Trn) -> None:
    again = running("start", "--quota", "L-2C3B7624=128", "--fail-nodes", "9")
    assert again.returncode == 1
    assert "L-2C3B7624: requested 128, is 384" in again.stderr
    assert "--fail-nodes: requested 9, is " in again.stderr


def test_command_after_dashes_reaches_embedded_aws(running: Trn) -> None:
    asks = "import boto3; print(boto3.client('sts').get_caller_identity()['Account'])"
    ran = running(
        "--", sys.executable, "-c", asks, AWS_PROFILE="production", AWS_ENDPOINT_URL_STS="https://aws.invalid"
    )
    assert (ran.returncode, ran.stdout) == (0, "123456789012\n")


def test_exit_code_of_command_is_returned(running: Trn) -> None:
    assert running("--", "sh", "-c", "exit 7").returncode == 7


def test_only_the_cdk_cli_is_from_node_modules(running: Trn, tmp_path: Path) -> None:
    """The working directory may be a cloned repository with a program named `sh`."""
    for name in ("cdk", "sh"):
        program = tmp_path / "node_modules/.bin" / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text("#!/bin/sh\necho project\n")
        program.chmod(0o755)
    assert running("--", "sh", "-c", "echo system", cwd=tmp_path).stdout == "system\n"
    assert running("--", "cdk", cwd=tmp_path).stdout == "project\n"


def test_missing_double_dash_is_reported(idle: Trn) -> None:
    ran = idle("cdk", "deploy")
    assert ran.returncode == 2
    assert "trn local -- cdk deploy" in ran.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--quota", "L-2C3B7625=1"), "nearest: L-2C3B7624"),
        (("--quota", "L-2C3B7624=many"), "integer number of vCPUs"),
        (("--region", "us-west-9"), "nearest: us-west-2"),
    ],
)
def test_invalid_setting_is_bad_usage_and_starts_nothing(idle: Trn, options: tuple[str, str], message: str) -> None:
    started = idle("start", *options)
    assert started.returncode == 2
    assert message in started.stderr
    assert idle("status").returncode == 3


def test_missing_extra_is_reported_with_install_command(tmp_path: Path) -> None:
    without_moto = "u.find_spec = lambda name, *a: None if name == 'moto' else find(name, *a)"
    imports = "import importlib.util as u; find = u.find_spec"
    code = f"{imports}; {without_moto}; from trainium_cli.local.local_command import local; local()"
    command = [sys.executable, "-c", code, "status"]
    ran = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"TRN_LOCAL_HOME": str(tmp_path)}
    )
    assert ran.returncode == 1
    assert "pip install 'trainium-cdk[local]'" in ran.stderr

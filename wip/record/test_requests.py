"""The requests to AWS of each command are those of a file, on a deployed cluster of one node.

A node more is a request to S3 more, for its record, in `nodes`, `status` and `run`.
"""

import json
import os
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import boto3
import pytest
from botocore.client import BaseClient

from tests.cli.running import run
from tests.constructs.synth import ROOT, cluster_template
from tests.deploy.account import Account
from trainium_local.environment import safe_environment, tool_folders
from trainium_local.server import Settings

EXPECTED: Mapping[str, Mapping[str, int]] = tomllib.loads(Path(__file__).with_name("expected_requests.toml").read_text())
MOST = {"status": 13, "nodes": 6, "jobs": 4, "run --detach hello.py": 14, "list": 6}
PLAN = {"trn:instance_type": "trn1.32xlarge", "trn:region": "us-west-2", "trn:nodes": 1}


def sent(account: Account, command: str, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, int]:
    """The number of requests of a command by operation."""
    called, make = Counter[str](), BaseClient._make_api_call  # pyright: ignore

    def counted(client: BaseClient, operation: str, parameters: object) -> object:
        called[f"{client.meta.service_model.service_name}:{operation}"] += 1
        return make(client, operation, parameters)

    for name, value in safe_environment(os.environ, account.aws.connection, tools=tool_folders(ROOT)).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(BaseClient, "_make_api_call", counted)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    monkeypatch.chdir(account.folder)
    ended = run(*command.split())
    assert ended.exit_code == 0, ended.output
    return dict(sorted(called.items()))


@pytest.fixture(scope="module")
def account(start_account: Callable[[Settings], Account]) -> Account:
    started = start_account(Settings(quotas={"L-2C3B7624": 128}))
    started.deploy(cluster_template(nodes=1))
    (started.folder / "cdk.json").write_text(json.dumps({"app": "x", "context": PLAN}))
    (started.folder / "hello.py").write_text("print('hello')\n")
    return started


@pytest.mark.parametrize("command", EXPECTED)
def test_command_sends_expected_requests(account: Account, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sent(account, command, monkeypatch) == EXPECTED[command]


def test_commands_need_few_requests() -> None:
    assert {command: sum(EXPECTED[command].values()) for command in MOST} == MOST

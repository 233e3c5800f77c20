"""The requests to AWS of each command are those of expected_requests.toml, on a deployed cluster of two nodes.

Not counted: requests of other programs, such as the CDK CLI, and of the parts of a log and the usage reports of nodes,
whose number depends on time.
"""

import json
import os
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import boto3
import pytest
from botocore.client import BaseClient
from click.testing import Result

from tests.cli.running import run
from tests.constructs.synth import ROOT, cluster_template
from tests.deploy.account import Account
from trainium_cli.exit_codes import ExitCode
from trainium_local.environment import safe_environment, tool_folders
from trainium_local.server import Settings

EXPECTED: Mapping[str, Mapping[str, int]] = tomllib.loads(
    Path(__file__).with_name("expected_requests.toml").read_text()
)
EXIT_CODES = {"audit": ExitCode.NOT_READY, "destroy": ExitCode.NOT_READY}
"""Exit codes by command, other than 0: an audit finds resources, and the destruction is declined."""

_TIMED = re.compile(r"/logs/|^usage/")
"""Keys of objects whose number depends on time."""
PLAN = {"trn:instance_type": "trn1.32xlarge", "trn:region": "us-west-2", "trn:nodes": 2}


class Requests:
    """Runs commands in this process, and counts their requests by operation."""

    def __init__(self, account: Account) -> None:
        self.account = account

    def run(self, *arguments: str) -> tuple[Result, Mapping[str, int]]:
        called, make = Counter[str](), BaseClient._make_api_call  # pyright: ignore

        def counted(client: BaseClient, operation: str, parameters: Mapping[str, object]) -> object:
            if not _TIMED.search(str(parameters.get("Key"))):
                called[f"{client.meta.service_model.service_name}:{operation}"] += 1
            return make(client, operation, parameters)

        environment = safe_environment(os.environ, self.account.aws.connection, tools=tool_folders(ROOT))
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            patch.setattr(BaseClient, "_make_api_call", counted)
            patch.setattr(boto3, "DEFAULT_SESSION", None)
            patch.chdir(self.account.folder)
            ended = run(*arguments, stdin="n\n")
        assert ended.exit_code == EXIT_CODES.get(arguments[0], ExitCode.OK), ended.output
        return ended, dict(sorted(called.items()))


@pytest.fixture(scope="module")
def requests(start_account: Callable[[Settings], Account]) -> Requests:
    started = start_account(Settings(quotas={"L-2C3B7624": 256}))
    started.deploy(cluster_template(nodes=2))
    (started.folder / "cdk.json").write_text(json.dumps({"app": "x", "context": PLAN}))
    lines = ('name = "hello"', 'command = "echo hello | tee $TRN_OUTPUT_DIR/hello.txt"')
    (started.folder / "hello.toml").write_text("\n".join(lines))
    return Requests(started)


@pytest.fixture(scope="module")
def ended_job(requests: Requests) -> str:
    """The ID of a job that has ended, after another one."""
    requests.run("run", "hello.toml")
    ended, _ = requests.run("run", "hello.toml", "--json")
    return json.loads(ended.stdout)["job"]["id"]


@pytest.mark.parametrize("command", EXPECTED)
def test_command_sends_expected_requests(requests: Requests, ended_job: str, command: str) -> None:
    _, sent = requests.run(*command.replace("JOB", ended_job).split())
    assert sent == EXPECTED[command]

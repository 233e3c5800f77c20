"""With exactly the permissions of `trn permissions`, CloudFormation deploys, and people read and operate."""

import json
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient

from tests.cli.running import run
from tests.constructs.synth import ROOT, cluster_template
from tests.deploy.account import Account, outputs
from tests.deploy.permitted import as_user, execution_policies
from trainium_core.permissions.roles import commands
from trainium_local.environment import safe_environment, tool_folders
from trainium_local.server import Settings

CHOSEN = {"instance_type": "trn1.32xlarge", "region": "us-west-2"}
PLAN: Mapping[str, Any] = {"nodes": 1, "ends": "5d", "ends_action": "destroy", "budget_usd": 500, "efs": "new"}
OPTIONS = [word for key, value in {**CHOSEN, "nodes": 1}.items() for word in ("-c", f"trn:{key}={value}")]
NAMES: Mapping[str, Any] = tomllib.loads((files("trainium_local.permissions") / "actions.toml").read_text())


@dataclass(frozen=True, kw_only=True)
class Ended:
    """The result of a command, and the IAM actions of all its calls."""

    code: int
    printed: str
    called: frozenset[str]


def action_of(client: Any, operation: str) -> str:
    signing_name = client.meta.service_model.signing_name
    prefix = NAMES["prefixes"].get(signing_name, signing_name)
    return f"{prefix}:{NAMES['actions'].get(prefix, {}).get(operation, operation)}"


def run_as(account: Account, *arguments: str) -> Ended:
    """Run `trn` in this process with the credentials of an account."""
    called = set[str]()
    make = BaseClient._make_api_call

    def recorded(client: Any, operation: str, parameters: Any) -> Any:
        called.add(action_of(client, operation))
        return make(client, operation, parameters)

    with pytest.MonkeyPatch.context() as patch:
        for name, value in safe_environment(os.environ, account.aws.connection, tools=tool_folders(ROOT)).items():
            patch.setenv(name, value)
        patch.setattr(BaseClient, "_make_api_call", recorded)
        patch.setattr(boto3, "DEFAULT_SESSION", None)
        patch.chdir(account.folder)
        ended = run(*arguments)
    return Ended(code=ended.exit_code, printed=ended.output, called=frozenset(called))


def documented(role: str, entry: str) -> set[str]:
    """The actions of an entry of a role, from data/permissions.toml."""
    return set(commands(role)[entry])


@pytest.fixture(scope="module")
def account(start_account: Callable[..., Account]) -> Account:
    """An account with a cluster of one node. CloudFormation has exactly the permissions of `trn permissions`."""
    account = start_account(Settings(iam="enforced"), execution_policies)
    account.deploy(cluster_template(**PLAN))
    return account


@pytest.fixture(scope="module")
def reader(account: Account) -> Account:
    return as_user(account, "read-only")


@pytest.fixture(scope="module")
def operating(account: Account) -> Account:
    return as_user(account, "operate")


def test_cloudformation_deploys_a_cluster(account: Account) -> None:
    assert outputs(account.cluster())["Fleet"] == "1 of 1 nodes verified"


READER_COMMANDS: Mapping[str, tuple[str, ...]] = {
    "nodes": ("nodes",),
    "preflight": ("preflight",),
    "capacity": ("capacity", "--regions", "us-west-2"),
    "image": ("image",),
    "audit": ("audit",),
    "cost": ("cost",),
    "jobs, logs": ("jobs",),
    "cache status, list": ("cache", "status"),
    "list, status": ("list",),
    "doctor": ("doctor",),
    "support": ("support",),
}
"""A command for each entry of the role, except those in NOT_RUN."""

NOT_RUN = {"estimate", "tco", "baseline"}
"""They call the AWS Price List API, which the embedded AWS does not have."""


def test_reader_commands_cover_every_entry_without_price_list() -> None:
    assert commands("read-only").keys() - READER_COMMANDS.keys() == NOT_RUN


@pytest.mark.parametrize("entry", READER_COMMANDS)
def test_reader_policy_allows_the_calls_of_its_commands(reader: Account, entry: str) -> None:
    ended = run_as(reader, *READER_COMMANDS[entry], *OPTIONS)
    assert "not authorized" not in ended.printed
    assert "denied" not in ended.printed.lower(), ended.printed
    assert "not allowed" not in ended.printed, ended.printed
    assert ended.called
    assert ended.called <= documented("read-only", entry)


def test_reader_policy_allows_the_search_for_enabled_regions(reader: Account) -> None:
    ended = run_as(reader, "list", "--all-regions")
    assert "ec2:DescribeRegions" in ended.called
    assert "not allowed" not in ended.printed, ended.printed
    assert ended.called <= documented("read-only", "list, status")


def test_reader_policy_does_not_allow_destroy(reader: Account) -> None:
    ended = run_as(reader, "destroy", "--yes", "--grace", "0", *OPTIONS)
    assert ended.code != 0
    assert "autoscaling:UpdateAutoScalingGroup" in ended.printed or "cloudformation:DeleteStack" in ended.printed
    assert outputs(reader.cluster())["Fleet"] == "1 of 1 nodes verified"


def test_deployer_policy_allows_extend_and_quota_requests(account: Account) -> None:
    deploying = as_user(account, "deploy")
    app = cluster_template(**PLAN, warning_hours=12).file.parent
    context = {f"trn:{key}": value for key, value in {**CHOSEN, **PLAN, "warning_hours": 12}.items()}
    (account.folder / "cdk.json").write_text(json.dumps({"app": str(app), "context": context}))
    extended = run_as(deploying, "extend", "8h", "--yes")
    assert extended.code == 0, extended.printed
    assert "This deployment does not terminate running nodes. Running: 1." in extended.printed
    assert extended.called <= {
        *documented("deploy", "deploy, extend"),
        *documented("read-only", "preflight"),
        *documented("read-only", "estimate"),
    }
    asked = run_as(deploying, "quota", "request", "--yes", "-c", "trn:nodes=100")
    assert asked.code == 0, asked.printed
    assert "servicequotas:RequestServiceQuotaIncrease" in asked.called
    assert asked.called <= {*documented("deploy", "quota request"), *documented("read-only", "preflight")}


def test_operator_policy_allows_run_sleep_wake_and_destroy(operating: Account) -> None:
    (operating.folder / "hello.py").write_text("import time\ntime.sleep(600)\n")
    # Stand-in nodes have this machine's file system.
    copied = operating.folder / "copied.py"
    steps = [
        ("operate", "run, stop, cp", ("run", *OPTIONS, "--detach", "hello.py")),
        ("read-only", "jobs, logs", ("logs", *OPTIONS)),
        ("operate", "run, stop, cp", ("stop", *OPTIONS)),
        ("operate", "run, stop, cp", ("cp", *OPTIONS, "hello.py", f"all:{copied}")),
        ("operate", "cache clean", ("cache", "clean", "--keep-releases", "0", "--yes", *OPTIONS)),
        ("operate", "sleep, wake", ("sleep", "--yes", "--grace", "0", *OPTIONS)),
        ("operate", "sleep, wake", ("wake", "--yes", *OPTIONS)),
        ("operate", "destroy", ("destroy", "--yes", "--grace", "0", *OPTIONS)),
    ]
    for role, entry, arguments in steps:
        ended = run_as(operating, *arguments)
        assert ended.code == 0, (arguments, ended.printed)
        assert ended.called <= documented(role, entry), arguments
    assert copied.exists()

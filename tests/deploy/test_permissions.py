"""With the permissions of `trn permissions` and no others, CloudFormation deploys, people look and operate."""

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient

from tests.cli.running import run
from tests.constructs.synth import cluster_template
from tests.deploy.account import Account, outputs
from tests.deploy.permitted import as_user, execution_policies
from trainium_core.permissions.roles import commands
from trainium_local.environment import safe_environment
from trainium_local.server import Settings

OPTIONS = ("-c", "trn:instance_type=trn1.32xlarge", "-c", "trn:region=us-west-2", "-c", "trn:nodes=1")
NAMES: Mapping[str, Any] = tomllib.loads((files("trainium_local.permissions") / "actions.toml").read_text())


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a command ended, and the IAM actions of all calls that it made."""

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
        for name, value in safe_environment(os.environ, account.aws.connection).items():
            patch.setenv(name, value)
        patch.setattr(BaseClient, "_make_api_call", recorded)
        patch.setattr(boto3, "DEFAULT_SESSION", None)
        patch.chdir(account.folder)
        ended = run(*arguments, *OPTIONS)
    return Ended(code=ended.exit_code, printed=ended.output, called=frozenset(called))


@pytest.fixture(scope="module")
def account(start_account: Callable[..., Account]) -> Account:
    """A cluster of one node, deployed by a CloudFormation that may do no more than it must."""
    account = start_account(Settings(iam="enforced"), execution_policies)
    account.deploy(cluster_template(nodes=1, ends="5d", ends_action="destroy", budget_usd=500, efs="new"))
    return account


@pytest.fixture(scope="module")
def looking(account: Account) -> Account:
    return as_user(account, "look")


@pytest.fixture(scope="module")
def operating(account: Account) -> Iterator[Account]:
    return as_user(account, "operate")


def test_cloudformation_deploys_a_cluster(account: Account) -> None:
    assert outputs(account.cluster())["Fleet"] == "1 of 1 nodes proven"


@pytest.mark.parametrize("command", ["nodes", "preflight", "audit", "image"])
def test_the_role_look_is_refused_no_call_and_makes_none_that_is_not_documented(looking: Account, command: str) -> None:
    ended = run_as(looking, command)
    assert "not authorized" not in ended.printed
    assert "denied" not in ended.printed.lower(), ended.printed
    assert ended.called
    assert ended.called <= set(commands("look")[command])


def test_the_role_look_cannot_destroy(looking: Account) -> None:
    ended = run_as(looking, "destroy", "--yes", "--grace", "0")
    assert ended.code != 0
    assert "autoscaling:UpdateAutoScalingGroup" in ended.printed or "cloudformation:DeleteStack" in ended.printed
    assert outputs(looking.cluster())["Fleet"] == "1 of 1 nodes proven"


def test_whoever_operates_puts_the_cluster_to_sleep_and_destroys_it(operating: Account) -> None:
    asleep = run_as(operating, "sleep", "--yes", "--grace", "0")
    assert asleep.code == 0, asleep.printed
    assert asleep.called <= set(commands("operate")["sleep, wake"])
    destroyed = run_as(operating, "destroy", "--yes", "--grace", "0")
    assert destroyed.code == 0, destroyed.printed
    assert destroyed.called <= set(commands("operate")["destroy"])

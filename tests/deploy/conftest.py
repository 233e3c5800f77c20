"""Embedded AWS accounts with the bootstrap stack of the pinned CDK CLI."""

import os
from collections.abc import Callable, Iterator, Sequence

import pytest

from tests.deploy.account import Account
from tests.local.conftest import EmbeddedAws, start_embedded_aws, start_shared_aws
from trainium_local.server import Settings

__all__ = ["start_embedded_aws", "start_shared_aws"]

ON_DEMAND_TRN = "L-2C3B7624"
QUOTA_VCPUS = 512
"""Four trn1.32xlarge."""


@pytest.fixture(scope="session", autouse=True)
def _without_aws_settings_of_the_user() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as environment:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            environment.delenv(name)
        yield


def _no_policies(_account: Account) -> Sequence[str]:
    return ()


def _bootstrapped(
    aws: EmbeddedAws,
    tmp_path_factory: pytest.TempPathFactory,
    execution_policies: Callable[[Account], Sequence[str]] = _no_policies,
) -> Account:
    account = Account(aws=aws, folder=tmp_path_factory.mktemp("account"))
    account.bootstrap(execution_policies=execution_policies(account))
    return account


@pytest.fixture(scope="module")
def start_account(
    start_embedded_aws: Callable[[Settings], EmbeddedAws],
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., Account]:
    """A function that starts a bootstrapped account for the module.

    It takes the settings of the server and, optionally, a function that creates the policies of CloudFormation's role.
    By default, the role has all permissions.
    """
    return lambda settings, *policies: _bootstrapped(start_embedded_aws(settings), tmp_path_factory, *policies)


@pytest.fixture(scope="session")
def account(start_shared_aws: Callable[[Settings], EmbeddedAws], tmp_path_factory: pytest.TempPathFactory) -> Account:
    """The account that tests share if they leave it unchanged."""
    return _bootstrapped(start_shared_aws(Settings(quotas={ON_DEMAND_TRN: QUOTA_VCPUS})), tmp_path_factory)

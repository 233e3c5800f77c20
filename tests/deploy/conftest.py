"""Embedded AWS accounts, bootstrapped by the real CDK CLI."""

import os
from collections.abc import Callable, Iterator

import pytest

from tests.deploy.account import Account
from tests.local.conftest import EmbeddedAws, start_embedded_aws
from trainium_local.server import Settings

__all__ = ["start_embedded_aws"]

ON_DEMAND_TRN = "L-2C3B7624"
QUOTA_VCPUS = 512
"""Four trn1.32xlarge."""


@pytest.fixture(scope="session", autouse=True)
def _no_aws_of_the_users() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as environment:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            environment.delenv(name)
        yield


@pytest.fixture(scope="session")
def start_account(
    start_embedded_aws: Callable[[Settings], EmbeddedAws],
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[Settings], Account]:
    """A bootstrapped account on a server with settings of one's own."""

    def start(settings: Settings) -> Account:
        account = Account(aws=start_embedded_aws(settings), folder=tmp_path_factory.mktemp("account"))
        account.bootstrap()
        return account

    return start


@pytest.fixture(scope="session")
def account(start_account: Callable[[Settings], Account]) -> Account:
    """The account of all tests that leave it as they found it."""
    return start_account(Settings(quotas={ON_DEMAND_TRN: QUOTA_VCPUS}))

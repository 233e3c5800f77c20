"""The output of some commands in pages is that of the embedded AWS, except for what differs between two runs."""

import shutil
from collections.abc import Callable

import pytest

from tests.constructs.synth import ROOT
from tests.deploy.account import Account
from tests.deploy.command import run_trn
from tests.deploy.conftest import ON_DEMAND_TRN
from tests.deploy.pages import shown_in, words
from tests.local.conftest import EmbeddedAws
from trainium_local.server import Settings

SHOWN = [
    ("start/pilot.md", "trn preflight", ()),
    ("start/pilot.md", "trn quota request", ("--yes",)),
    ("guides/audit.md", "trn audit", ()),
]


@pytest.fixture(scope="module")
def account(start_embedded_aws: Callable[[Settings], EmbeddedAws], tmp_path_factory: pytest.TempPathFactory) -> Account:
    """The account of the pages: with quota for one of two nodes, and not bootstrapped."""
    folder = tmp_path_factory.mktemp("account")
    shutil.copy(ROOT / "cdk.json", folder)
    return Account(aws=start_embedded_aws(Settings(quotas={ON_DEMAND_TRN: 128})), folder=folder)


@pytest.mark.parametrize(("page", "command", "more"), SHOWN, ids=[f"{page}: {command}" for page, command, _ in SHOWN])
def test_page_shows_the_real_output(account: Account, page: str, command: str, more: tuple[str, ...]) -> None:
    shown = shown_in(page, command)
    assert shown
    assert shown in words(run_trn(account, *command.split()[1:], *more, environment={"COLUMNS": "100"}).printed)

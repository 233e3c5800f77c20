"""What pages show of commands that ask an account is what the embedded AWS makes them print, but for ids and times."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.constructs.synth import ROOT
from tests.deploy.account import Account
from tests.deploy.command import run_trn
from tests.deploy.conftest import ON_DEMAND_TRN
from tests.local.conftest import EmbeddedAws
from trainium_local.server import Settings

PAGES = ROOT / "docs"
DIFFERING = {
    r"http://127\.0\.0\.1:\d+": "ENDPOINT",
    r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?Z": "TIME",
    r"\b[0-9a-f]{32}\b": "ID",
    r"\b[\d.]+ h from now": "HOURS from now",
    r"─+": "─",
    r"Ask AWS for this\? \[y/N\]: y": "",
}
SHOWN = [
    ("start/pilot.md", "trn preflight", ()),
    ("start/pilot.md", "trn quota request", ("--yes",)),
    ("guides/audit.md", "trn audit", ()),
]


def words(text: str) -> list[str]:
    """What is said, whatever the width of the terminal."""
    for pattern, name in DIFFERING.items():
        text = re.sub(pattern, name, text)
    return text.split()


def shown_in(page: Path, command: str) -> str:
    """What follows the command in a block of code; after `[...]` where that stands for what is left out."""
    (output,) = re.findall(rf"^\$ {command}\n((?:(?!\$ |```).*\n)*)", page.read_text(), re.MULTILINE)
    return output.rpartition("[...]\n")[2]


@pytest.fixture(scope="module")
def account(start_embedded_aws: Callable[[Settings], EmbeddedAws], tmp_path_factory: pytest.TempPathFactory) -> Account:
    """As the pages have it: with room for one node of two, and not bootstrapped."""
    folder = tmp_path_factory.mktemp("account")
    shutil.copy(ROOT / "cdk.json", folder)
    return Account(aws=start_embedded_aws(Settings(quotas={ON_DEMAND_TRN: 128})), folder=folder)


@pytest.mark.parametrize(("page", "command", "more"), SHOWN, ids=[f"{page}: {command}" for page, command, _ in SHOWN])
def test_a_page_shows_what_is_printed(account: Account, page: str, command: str, more: tuple[str, ...]) -> None:
    shown = shown_in(PAGES / page, command)
    assert shown
    printed = run_trn(account, *command.split()[1:], *more, environment={"COLUMNS": "100"}).printed
    assert " ".join(words(shown)) in " ".join(words(printed))

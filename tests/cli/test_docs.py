"""The documentation names every command and no other."""

import re
from pathlib import Path

import pytest

from trainium_cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]


def commands_named_in(page: Path) -> set[str]:
    """Words that follow `trn` where it is typed as a command: in code, or after a shell prompt."""
    return set(re.findall(r"(?:`|\$ |^ *|&& )trn ([a-z]+)", page.read_text(), flags=re.MULTILINE))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_readme_names_every_command(name: str) -> None:
    assert name in commands_named_in(ROOT / "README.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_names_a_command_that_does_not_exist(page: Path) -> None:
    assert commands_named_in(page) <= set(COMMANDS)

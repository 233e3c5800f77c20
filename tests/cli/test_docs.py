"""The documentation names every command and no other."""

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.cli.running import run
from trainium_cli.main import COMMANDS
from trainium_core.plan.context import plan_from_context

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


CHECKLIST = ROOT / "docs" / "start" / "first-deployment.md"
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", CHECKLIST.read_text(), flags=re.MULTILINE | re.DOTALL)
TYPED = sorted({line for kind, block in BLOCKS if not kind for line in block.splitlines() if line.startswith("trn ")})


@pytest.mark.parametrize("line", TYPED)
def test_what_the_checklist_has_one_type_is_a_command_with_options_that_exist(line: str) -> None:
    ended = run(*shlex.split(line)[1:], "--help")
    assert ended.exit_code == 0, ended.output


def test_the_plan_of_the_checklist_is_valid_also_with_what_its_commands_change() -> None:
    settings, *later = [json.loads(f"{{{block}}}") for kind, block in BLOCKS if kind == "json"]
    plan_from_context(settings, ROOT)
    for change in later:
        plan_from_context(settings | change, ROOT)
    changes = [dict(part.split("=", 1) for part in re.findall(r"-c (\S+)", line)) for line in TYPED]
    for change in filter(None, changes):
        plan_from_context(settings | change, ROOT)

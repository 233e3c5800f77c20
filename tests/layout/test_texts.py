"""Paths, tests and make targets that documents name exist, and no text depends on one person's machine."""

import re
from pathlib import Path

import pytest

from tests.layout.repository import ROOT, files

DOCUMENTS = [file for file in files() if file.suffix == ".md"]

ELSEWHERE = re.compile(r"\.\./shared|/work/(main|shared)|registry\.npmjs|pypi\.org|pythonhosted")
"""Folders and servers that a clone of this repository must not depend on."""


def make_targets(text: str) -> set[str]:
    """Targets of the `make` commands in a text: in backquotes, or at the start of a line of a code block."""
    return set(re.findall(r"(?:`|^\s*(?:\$ )?)make ([a-z][a-z-]*)(?=`|\s*$|\s+#)", text, re.MULTILINE))


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_make_targets_in_documents_exist(document: Path) -> None:
    rules = re.findall(r"^([a-z -]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    defined = {target for rule in rules for target in rule.split()}
    assert make_targets((ROOT / document).read_text()) - defined == set()


def paths(text: str) -> set[str]:
    """Files and folders of this repository in backquotes in a text, without wildcards and placeholders such as NAME."""
    folders = {file.parts[0] for file in files() if len(file.parts) > 1}
    named = re.findall(r"`([\w-]+)/([\w./-]*)`", text)
    return {f"{top}/{rest}" for top, rest in named if top in folders and "NAME" not in rest}


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_paths_in_documents_exist(document: Path) -> None:
    assert [path for path in paths((ROOT / document).read_text()) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_test_files_in_documents_exist(document: Path) -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / document).read_text()))
    assert named - {file.stem for file in files()} == set()


def test_readme_names_make_demo_and_make_test() -> None:
    assert make_targets((ROOT / "README.md").read_text()) >= {"demo", "test"}


def test_every_make_target_has_a_description() -> None:
    lines = re.findall(r"^[a-z -]+:.*$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert [line for line in lines if "## " not in line] == []


def test_design_names_every_folder_of_core() -> None:
    folders = {file.parts[2] for file in files() if file.is_relative_to("src/trainium_core") and file.parts[3:]}
    text = (ROOT / "docs/project/design.md").read_text()
    assert [folder for folder in sorted(folders - {"data"}) if f"`{folder}/" not in text] == []


def test_no_file_refers_outside_the_repository() -> None:
    texts = [file for file in files() if not file.is_relative_to("tests/layout")]
    assert [str(file) for file in texts if ELSEWHERE.search((ROOT / file).read_text(errors="replace"))] == []


def test_changelog_begins_with_the_package_version() -> None:
    version = re.findall(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert re.findall(r"^## ([\d.]+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[:1] == version

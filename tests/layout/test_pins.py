"""Everything that is installed has its version in a file, and no file says from which server it comes."""

import json
import re
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.layout.repository import ROOT, files

REQUIREMENTS = [Path("requirements.txt"), *(file for file in files() if file.parent == Path("requirements"))]
CONSTRAINTS = [file for file in files() if file.is_relative_to("requirements/pins")]
LOCKS = [*REQUIREMENTS, *CONSTRAINTS, Path("package.json"), Path("package-lock.json"), Path(".npmrc")]

EXACT = re.compile(r"([\w.-]+)(?:\[[\w,]+\])?==([\w.]+)")


def pins(file: Path) -> dict[str, str]:
    """Canonical name and version of each exact pin of a requirements file."""
    matches = (EXACT.fullmatch(line) for line in (ROOT / file).read_text().splitlines())
    return {canonicalize_name(match[1]): match[2] for match in matches if match}


def node_tools() -> dict[str, str]:
    return json.loads((ROOT / "package.json").read_text())["devDependencies"]


def test_the_environments_are_pinned_in_files_of_their_own() -> None:
    names = {"requirements", "bench", "checkov", "docs", "lowest", "node", "torch"}
    assert {file.stem for file in REQUIREMENTS} == names


@pytest.mark.parametrize("file", [*REQUIREMENTS, *CONSTRAINTS], ids=str)
def test_every_line_of_a_requirements_file_is_an_exact_pin(file: Path) -> None:
    lines = [line for line in (ROOT / file).read_text().splitlines() if not line.startswith(("#", "-c ", "-e "))]
    assert lines
    assert [line for line in lines if not EXACT.fullmatch(line)] == []


@pytest.mark.parametrize("file", LOCKS, ids=str)
def test_no_pin_file_names_a_server(file: Path) -> None:
    text = (ROOT / file).read_text()
    assert "://" not in text
    assert '"resolved"' not in text


def test_node_tools_are_pinned_exactly() -> None:
    assert [tool for tool, version in node_tools().items() if not re.fullmatch(r"\d+\.\d+\.\d+", version)] == []


def test_the_cdk_cli_is_of_the_second_major_release() -> None:
    # npm's `latest` tag points to a 3.0.0 that was published by mistake.
    assert node_tools()["aws-cdk"].startswith("2.")


def test_the_lock_file_holds_the_versions_of_package_json() -> None:
    packages = json.loads((ROOT / "package-lock.json").read_text())["packages"]
    assert {tool: packages[f"node_modules/{tool}"]["version"] for tool in node_tools()} == node_tools()


@pytest.mark.parametrize(
    "name",
    [
        "requirements",
        "requirements/checkov",
        "requirements/bench",
        "requirements/docs",
        "requirements/torch",
        "requirements/lowest",
    ],
)
def test_a_package_is_pinned_in_one_place(name: str) -> None:
    text = (ROOT / f"{name}.txt").read_text()
    (constraints,) = re.findall(r"^-c (.*)$", text, re.MULTILINE)
    file = Path(f"{name}.txt")
    assert pins(file).keys() & pins(file.parent / constraints).keys() == set()


def test_what_is_installed_is_what_the_files_pin() -> None:
    pinned = pins(Path("requirements.txt")) | pins(Path("requirements/pins/dev.txt"))
    assert {name: distribution(name).version for name in pinned} == pinned


def test_what_a_pinned_package_needs_is_pinned_too() -> None:
    pinned = pins(Path("requirements.txt")) | pins(Path("requirements/pins/dev.txt"))
    needed = {Requirement(line) for name in pinned for line in distribution(name).requires or ()}
    names = {canonicalize_name(need.name) for need in needed if not need.marker or need.marker.evaluate({"extra": ""})}
    assert names - pinned.keys() == set()

"""Requirements files pin versions and hashes, those of requirements/dev.txt are installed, and none names a server."""

import json
import re
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.layout.repository import ROOT, files

REQUIREMENTS = [Path("requirements.txt"), *(file for file in files() if file.match("requirements/*.txt"))]
HASHED = [file for file in REQUIREMENTS if file.name not in ("torch.txt", "requirements.txt")]
LOCKS = [*REQUIREMENTS, Path("package.json"), Path("package-lock.json"), Path(".npmrc")]


def entries(file: Path) -> list[list[str]]:
    """Each pin of a requirements file, with its options."""
    text = re.sub(r"\\\n|#.*|^-e .*", "", (ROOT / file).read_text(), flags=re.MULTILINE)
    return [re.split(r"\s+(?=--)", line.strip()) for line in text.splitlines() if line.strip()]


def pins(file: Path) -> dict[str, str]:
    """Canonical name and version of each pin in a requirements file that applies to this Python and system."""
    needs = [Requirement(words[0]) for words in entries(file)]
    chosen = {canonicalize_name(need.name): need for need in needs if need.marker is None or need.marker.evaluate()}
    return {name: str(need.specifier).removeprefix("==") for name, need in chosen.items()}


def node_tools() -> dict[str, str]:
    return json.loads((ROOT / "package.json").read_text())["devDependencies"]


@pytest.mark.parametrize("file", REQUIREMENTS, ids=str)
def test_every_requirement_for_this_system_is_an_exact_pin(file: Path) -> None:
    assert [pin for pin in pins(file).items() if not re.fullmatch(r"[\w.]+", pin[1])] == []


@pytest.mark.parametrize("file", HASHED, ids=str)
def test_every_pin_has_hashes(file: Path) -> None:
    """PyTorch is installed from an index that has other files of the same versions; pip hashes no folder, here `.`."""
    missing = [pin for pin, *options in entries(file) if not any(one.startswith("--hash=sha256:") for one in options)]
    assert missing == []


@pytest.mark.parametrize("file", LOCKS, ids=str)
def test_no_pin_file_names_a_server(file: Path) -> None:
    text = (ROOT / file).read_text()
    assert "://" not in text
    assert '"resolved"' not in text


def test_requirements_txt_installs_this_package_with_the_pinned_versions() -> None:
    assert pins(Path("requirements.txt")) == pins(Path("requirements/dev.txt"))
    assert "\n-e .\n" in re.sub(" +#.*", "", (ROOT / "requirements.txt").read_text())


def test_pins_are_within_the_ranges_of_pyproject() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    needs = [need for each in lists for need in map(Requirement, each) if need.name != project["name"]]
    pinned = pins(Path("requirements/dev.txt"))
    assert [str(need) for need in needs if pinned.get(canonicalize_name(need.name), "") not in need.specifier] == []


def test_installed_versions_are_the_pinned_ones() -> None:
    pinned = pins(Path("requirements/dev.txt"))
    assert {name: distribution(name).version for name in pinned} == pinned


def test_node_tools_are_pinned_exactly() -> None:
    assert [tool for tool, version in node_tools().items() if not re.fullmatch(r"\d+\.\d+\.\d+", version)] == []


def test_cdk_cli_has_major_version_2() -> None:
    # npm has a 3.0.0 that was published by mistake.
    assert node_tools()["aws-cdk"].startswith("2.")


def test_lock_file_has_the_versions_of_package_json() -> None:
    packages = json.loads((ROOT / "package-lock.json").read_text())["packages"]
    assert {tool: packages[f"node_modules/{tool}"]["version"] for tool in node_tools()} == node_tools()

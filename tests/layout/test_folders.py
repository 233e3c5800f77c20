"""The folders have their promised contents, and nothing that would break imports."""

import subprocess
from pathlib import Path

import pytest

from tests.layout.repository import PACKAGES, ROOT, files, python_files

LONGEST_MODULE = 400


@pytest.mark.parametrize("name", ["app.py", "cdk.json", "requirements.txt", "README.md", "LICENSE", "Makefile"])
def test_required_file_exists_and_is_not_empty(name: str) -> None:
    assert (ROOT / name).read_text().strip()


@pytest.mark.parametrize("folder", ["stacks", "tests", "constructs", "userdata"])
def test_required_folder_contains_python_code(folder: str) -> None:
    modules = [file for file in python_files() if file.parts[0] == folder and (ROOT / file).read_text().strip()]
    assert [file for file in modules if file.name != "__init__.py"]


@pytest.mark.parametrize("root", sorted({folder.parts[0] for folder in PACKAGES.values()}))
def test_source_root_contains_only_packages(root: str) -> None:
    # An __init__.py in constructs/ would shadow PyPI's `constructs`; a module there would become a top-level one.
    held = {file.parts[1] for file in files() if file.parts[0] == root}
    assert held == {package for package, folder in PACKAGES.items() if folder.parts[0] == root}


@pytest.mark.parametrize("folder", PACKAGES.values(), ids=str)
def test_package_is_marked_as_typed(folder: Path) -> None:
    assert folder / "py.typed" in files()


@pytest.mark.parametrize("suffix", [".py", ".csv", ".j2", ".json", ".sh", ".toml", ".txt"])
@pytest.mark.parametrize("folder", PACKAGES.values(), ids=str)
def test_git_does_not_ignore_data_files_of_a_package(folder: Path, suffix: str) -> None:
    # hatch omits files that git ignores from the wheel, without an error.
    command = ["git", "check-ignore", "--no-index", "--quiet", f"{folder}/data/example{suffix}"]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 1


def test_modules_stay_within_the_size_limit() -> None:
    lengths = {str(file): len((ROOT / file).read_text().splitlines()) for file in python_files()}
    assert {name: length for name, length in lengths.items() if length > LONGEST_MODULE} == {}

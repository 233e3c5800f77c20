"""The folders hold what their names promise, and nothing that would break the imports."""

import subprocess
from pathlib import Path

import pytest

from tests.layout.repository import PACKAGE_OF, ROOT, files, python_files

LONGEST_MODULE = 400


@pytest.mark.parametrize("name", ["app.py", "cdk.json", "requirements.txt", "README.md", "LICENSE", "Makefile"])
def test_a_required_file_is_there_and_not_empty(name: str) -> None:
    assert (ROOT / name).read_text().strip()


@pytest.mark.parametrize("folder", ["stacks", "tests", *PACKAGE_OF])
def test_a_required_folder_holds_python_code(folder: str) -> None:
    modules = [file for file in python_files() if file.parts[0] == folder and (ROOT / file).read_text().strip()]
    assert [file for file in modules if file.name != "__init__.py"]


@pytest.mark.parametrize(("folder", "package"), PACKAGE_OF.items())
def test_a_source_root_holds_its_one_package_and_no_module(folder: str, package: str) -> None:
    # An __init__.py in constructs/ would shadow PyPI's `constructs`; a module there would become a top-level one.
    of_distribution = {"pyproject.toml", "README.md"} if folder == "local" else set[str]()
    assert {file.parts[1] for file in files() if file.parts[0] == folder} == {package, *of_distribution}


@pytest.mark.parametrize(("folder", "package"), PACKAGE_OF.items())
def test_a_package_says_that_it_is_typed(folder: str, package: str) -> None:
    assert Path(folder, package, "py.typed") in files()


@pytest.mark.parametrize("suffix", [".py", ".j2", ".toml", ".json", ".sh", ".txt"])
@pytest.mark.parametrize(("folder", "package"), PACKAGE_OF.items())
def test_git_ignores_no_kind_of_file_that_a_wheel_ships(folder: str, package: str, suffix: str) -> None:
    # hatch leaves out of the wheel, without a word, whatever git ignores.
    command = ["git", "check-ignore", "--no-index", "--quiet", f"{folder}/{package}/data/example{suffix}"]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 1


def test_no_module_is_longer_than_a_reader_can_hold() -> None:
    lengths = {str(file): len((ROOT / file).read_text().splitlines()) for file in python_files()}
    assert {name: length for name, length in lengths.items() if length > LONGEST_MODULE} == {}

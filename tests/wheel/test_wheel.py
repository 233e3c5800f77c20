"""The wheel is complete, and works without this repository."""

import re
import subprocess
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

from tests.constructs.synth import ROOT
from tests.layout.repository import PACKAGES
from tests.wheel.environment import WheelEnvironment

NEEDED_BY_LOCAL = {"moto", "cfnlint", "yaml"}
"""Top-level modules that only the extra `local` installs."""


@pytest.fixture(scope="module")
def content(wheel_environment: WheelEnvironment) -> set[str]:
    return set(zipfile.ZipFile(wheel_environment.wheel).namelist())


def test_wheel_contains_only_its_packages(content: set[str]) -> None:
    assert {name.split("/")[0] for name in content if ".dist-info" not in name} == set(PACKAGES)


def test_description_has_no_link_that_works_only_in_the_repository(wheel_environment: WheelEnvironment) -> None:
    archive = zipfile.ZipFile(wheel_environment.wheel)
    (file,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    metadata = message_from_string(archive.read(file).decode())
    assert {"Typing :: Typed", "Framework :: AWS CDK :: 2"} <= set(metadata.get_all("Classifier", []))
    assert metadata["Author"]
    description = metadata.get_payload()
    assert "NeuronFleet" in description
    assert re.findall(r"\]\((?!https://)|checkout|make ", description) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_wheel_contains_every_file_of_a_package(content: set[str], package: str) -> None:
    """Includes templates and data files, which a careless line in .gitignore would silently drop."""
    folder = ROOT / PACKAGES[package]
    files = {
        str(path.relative_to(folder.parent)) for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"
    }
    assert files == {name for name in content if name.startswith(f"{package}/")}


def test_packages_are_imported_from_the_wheel_without_the_command_line(
    wheel_environment: WheelEnvironment, tmp_path: Path
) -> None:
    """The environment has the requirements of the constructs only."""
    line = f"import {', '.join(PACKAGES)}; print(*(one.__file__ for one in ({', '.join(PACKAGES)})), sep='\\n')"
    places = wheel_environment.run(wheel_environment.python, "-c", line, folder=tmp_path).splitlines()
    assert len(places) == len(PACKAGES)
    assert [place for place in places if not place.startswith(str(wheel_environment.python.parents[1]))] == []


def test_user_data_are_rendered(wheel_environment: WheelEnvironment, tmp_path: Path) -> None:
    line = (
        "from trainium_core import Plan; from trainium_core.plan.node_settings import node_settings; "
        "from trainium_userdata.locations import NodeLocations; "
        "from trainium_userdata.script import node_user_data; "
        "places = NodeLocations(region='us-west-2', cache_url='s3://c/x', report_url='s3://r/x', "
        "node_script_url='s3://a/x'); "
        "print(node_user_data(node_settings(Plan(instance_type='trn1.32xlarge', region='us-west-2')), places))"
    )
    assert wheel_environment.run(wheel_environment.python, "-c", line, folder=tmp_path).startswith("MIME-Version: 1.0")


def test_command_without_its_extra_is_reported(wheel_environment: WheelEnvironment, tmp_path: Path) -> None:
    command = [wheel_environment.trn, "types"]
    ran = subprocess.run(
        command, cwd=tmp_path, env=wheel_environment.variables, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (3, "")
    assert ran.stderr == (
        "trn: boto3, click, jmespath, pathspec, rich not installed. "
        "Install the command line with: pip install 'trainium-cdk[cli]'\n"
    )


def test_command_reads_its_catalogue(command_line: WheelEnvironment, tmp_path: Path) -> None:
    assert "trn2.48xlarge" in command_line.run(command_line.trn, "types", "--json", folder=tmp_path)


def test_modules_of_cli_and_core_need_only_the_extras_cli_and_local(
    command_line: WheelEnvironment, tmp_path: Path
) -> None:
    code = (
        "import pkgutil, trainium_cli, trainium_core\n"
        "from importlib import import_module\n"
        "for package in (trainium_cli, trainium_core):\n"
        "    for found in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "        try: import_module(found.name)\n"
        "        except ModuleNotFoundError as error: print(found.name, error.name)\n"
    )
    missing = dict(
        line.split() for line in command_line.run(command_line.python, "-c", code, folder=tmp_path).splitlines()
    )
    assert {name: one for name, one in missing.items() if one not in NEEDED_BY_LOCAL} == {}

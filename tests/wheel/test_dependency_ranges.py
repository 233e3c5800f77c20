"""The wheel works with its lowest allowed dependencies, on the tested Python versions that this machine has.

All other tests run with the versions of requirements.txt. `make lowest-env` makes the environment with the lowest
versions, and `make security` runs this file.
"""

import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tests.layout.repository import ROOT
from tests.layout.test_pins import pins
from tests.shared import made_once
from tests.wheel.environment import (
    DOWNSTREAM_APPS,
    WheelEnvironment,
    borrow,
    built_wheel,
    synthesize_apps,
    unpack_wheel,
)

LOWEST = ROOT / ".venv-lowest"
APPS = ("cache_and_quota", "cdk_init", "web_app")
"""Apps without cdk-nag, which requires a newer `constructs`."""
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NEWEST_PYTHON = (3, 14)
"""The newest Python version that is tested."""


def supported_pythons() -> list[str]:
    allowed = SpecifierSet(PROJECT["requires-python"])
    return [f"3.{minor}" for minor in range(NEWEST_PYTHON[1] + 1) if f"3.{minor}" in allowed]


def interpreter(version: str) -> Path:
    """The Python of a version, from pyenv or PATH. Skips the test if there is none."""
    of_pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [*of_pyenv.glob(f"{version}.*/bin/python")]
    on_path = shutil.which(f"python{version}")
    for candidate in (*found, *([Path(on_path)] if on_path else [])):
        printed = subprocess.run([candidate, "--version"], capture_output=True, text=True, check=False).stdout
        if printed.startswith(f"Python {version}."):
            return candidate
    pytest.skip(f"this machine has no Python {version}")  # noqa: TID251 - `make security` lists these


def lowest_environment(version: str) -> WheelEnvironment:
    """The wheel in a new environment of a Python, with the lowest versions of its requirements, from LOWEST."""
    python = interpreter(version)

    def make(folder: Path) -> None:
        subprocess.run([python, "-m", "venv", "--without-pip", folder / "venv"], check=True)
        (site_packages,) = (folder / "venv").glob("lib/python*/site-packages")
        unpack_wheel(built_wheel(), site_packages)
        (lender,) = LOWEST.glob("lib/python*/site-packages")
        borrow(site_packages, lender, ["cli"])

    folder = made_once(f"lowest environment {version}", make)
    return WheelEnvironment(wheel=built_wheel(), python=folder / "venv" / "bin" / "python")


def minimum(line: str) -> tuple[str, str]:
    requirement = Requirement(line)
    (lowest,) = [one.version for one in requirement.specifier if one.operator == ">="]
    return canonicalize_name(requirement.name), lowest


def test_lowest_versions_are_the_declared_ones() -> None:
    declared = dict(minimum(line) for line in [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["cli"]])
    installed = pins(Path("requirements/lowest.txt"))
    assert {name: re.sub(r"(\.0)+$", "", installed[name]) for name in declared} == {
        name: re.sub(r"(\.0)+$", "", version) for name, version in declared.items()
    }


@pytest.mark.parametrize("version", [supported_pythons()[0], supported_pythons()[-1]])
def test_apps_are_synthesised_with_the_lowest_versions(version: str, tmp_path: Path) -> None:
    apps = {app: ((DOWNSTREAM_APPS / f"{app}.py").read_text(), {"nodes": 1}) for app in APPS}
    synthesize_apps(lowest_environment(version), tmp_path, apps)
    templates = [json.loads(file.read_text()) for file in tmp_path.rglob("*.template.json")]
    assert sum(template["Resources"] != {} for template in templates) == len(APPS)


@pytest.mark.parametrize("version", supported_pythons())
def test_command_starts_with_the_lowest_versions(version: str, tmp_path: Path) -> None:
    environment = lowest_environment(version)
    command = "from trainium_cli.start import main; main()"
    assert "trn2.48xlarge" in environment.run(environment.python, "-c", command, "types", "--json", folder=tmp_path)

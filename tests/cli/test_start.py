"""The start of `trn`: the libraries that it looks for are those of its extra."""

import tomllib

from packaging.requirements import Requirement

from tests.layout.repository import ROOT
from trainium_cli.start import LIBRARIES


def test_required_libraries_are_those_of_the_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert tuple(Requirement(line).name for line in extras["cli"]) == LIBRARIES

"""Where `trn` begins: the libraries that it looks for are those that its extra brings."""

import tomllib

from packaging.requirements import Requirement

from tests.layout.repository import ROOT
from trainium_cli.start import LIBRARIES


def test_the_libraries_that_are_looked_for_are_those_of_the_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert tuple(Requirement(line).name for line in extras["cli"]) == LIBRARIES

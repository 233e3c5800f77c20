"""The start of `trn`: the libraries that it looks for, and Ctrl-C before they are imported."""

import subprocess
import sys
import tomllib

from packaging.requirements import Requirement

from tests.layout.repository import ROOT
from trainium_cli.start import LIBRARIES


def test_required_libraries_are_those_of_the_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert tuple(Requirement(line).name for line in extras["cli"]) == LIBRARIES


def test_ctrl_c_during_imports_ends_with_a_message() -> None:
    interrupted = "start.find_spec = lambda _: os.kill(os.getpid(), signal.SIGINT)"
    program = f"import os, signal; from trainium_cli import start; {interrupted}; start.main()"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=480)
    assert (ended.returncode, ended.stderr) == (130, "\nInterrupted.\n")

"""Where `trn` begins: the libraries that it looks for are those that its extra brings; and where it ends."""

import gc
import signal
import subprocess
import sys
import tomllib

import pytest
from packaging.requirements import Requirement

from tests.layout.repository import ROOT
from trainium_cli.start import LIBRARIES, main


def test_the_libraries_that_are_looked_for_are_those_of_the_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert tuple(Requirement(line).name for line in extras["cli"]) == LIBRARIES


def test_no_garbage_is_looked_for_when_the_command_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    def end() -> None:
        raise SystemExit(0)

    monkeypatch.setattr("trainium_cli.main.main", end)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    before = gc.get_threshold()
    try:
        with pytest.raises(SystemExit):
            main()
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


def test_ctrl_c_while_python_imports_the_command_ends_it_with_a_sentence() -> None:
    interrupted = "start.find_spec = lambda _: os.kill(os.getpid(), signal.SIGINT)"
    program = f"import os, signal; from trainium_cli import start; {interrupted}; start.main()"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stderr) == (130, "\nInterrupted.\n")

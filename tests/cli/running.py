"""Runs `trn` as a user does: in this process, or as a separate program."""

import os
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner, Result

from tests.forked import run_trn
from trainium_cli.main import trn

GOOD = ("-c", "trn:instance_type=trn1.32xlarge", "-c", "trn:region=us-west-2")


def run(*arguments: str, stdin: str | None = None) -> Result:
    """Run a command in this process, with separate standard output and error."""
    return CliRunner().invoke(trn, arguments, input=stdin, prog_name="trn")


def run_program(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `trn` as a separate process, with its output in files."""
    merged = _environment() | environment
    return run_trn(arguments, folder=Path.cwd(), environment=merged, stderr_apart=True)


def run_installed(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the installed `trn`, with its output in pipes."""
    command = [str(Path(sys.executable).with_name("trn")), *arguments]
    return subprocess.run(
        command,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=480,
    )


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "FORCE_COLOR")}

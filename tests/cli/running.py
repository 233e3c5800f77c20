"""`trn` as a user runs it: in this process, or as a program of its own."""

import os
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner, Result

from trainium_cli.main import trn

GOOD = ("-c", "trn:instance_type=trn1.32xlarge", "-c", "trn:region=us-west-2")


def run(*arguments: str) -> Result:
    """Run a command in this process; standard output and error are told apart."""
    return CliRunner().invoke(trn, arguments, prog_name="trn")


def run_program(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the installed `trn` with its output in pipes."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "FORCE_COLOR")}
    program = str(Path(sys.executable).with_name("trn"))
    return subprocess.run(
        [program, *arguments],
        env=inherited | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

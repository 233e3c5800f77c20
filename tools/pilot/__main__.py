"""make pilot: runs examples/pilot from the assessment to the report, on an embedded AWS and CPUs.

The nodes are stand-ins that run the jobs as processes of this machine, so each number is of the lab.
"""

import os
import shutil
import sys
import time
from pathlib import Path

from tools.demo.commands import CommandFailedError, Commands
from tools.demo.private_aws import private_aws
from trainium_cli.exit_codes import ExitCode
from trainium_cli.terminal import console
from trainium_local.environment import ACCOUNT_ID, NotTheEmbeddedAwsError
from trainium_local.lifecycle import LocalError

PROJECT = Path(__file__).parents[2]
PLACE = Path("build/pilot")
REGION = "us-east-1"
UNKNOWN = (ExitCode.UNKNOWN,)
"""Of `trn tco`, because nothing compiles on a CPU, and of `trn report`, because records of the lab decide nothing."""


def main() -> int:
    started = time.monotonic()
    # The jobs of stand-in nodes need torchrun.
    os.environ["PATH"] += f":{PROJECT / '.venv-torch/bin'}"
    shutil.rmtree(PROJECT / PLACE, ignore_errors=True)
    try:
        with private_aws(PROJECT, REGION):
            _pilot(Commands(console()))
    except KeyboardInterrupt:
        return _failed("interrupted")
    except (CommandFailedError, LocalError, NotTheEmbeddedAwsError) as error:
        return _failed(str(error))
    took = f"{time.monotonic() - started:.0f} s"
    print(f"make pilot: {PLACE}/pilot/report.html has the report, with numbers of CPUs only; it took {took}")
    return 0


def _pilot(run: Commands) -> None:
    folder = PROJECT / PLACE
    asked = ["--type", "trn1.2xlarge", "--nodes", "1", "--name", "lm", "--region", REGION]
    run.trn("init", str(PLACE), "--yes", *asked, cwd=PROJECT)
    shutil.copytree(PROJECT / "examples/pilot", folder, dirs_exist_ok=True)
    shutil.copytree(PROJECT / "examples/lm", folder / "lm")
    run.trn("baseline", "--output", "gpu", cwd=folder)
    run.cdk("bootstrap", f"aws://{ACCOUNT_ID}/{REGION}", cwd=folder)
    run.trn("pilot", "pilot.toml", "--yes", cwd=folder)
    run.trn("tco", "tco.toml", "--output", "pilot/evidence", codes=UNKNOWN, cwd=folder)
    shutil.copy(folder / "contract.toml", folder / "pilot/evidence")
    run.trn("report", "pilot/evidence", "--output", "pilot/report.html", codes=UNKNOWN, cwd=folder)


def _failed(reason: str) -> int:
    print(f"\n{reason}\nmake pilot: failed; the embedded AWS is stopped, and its content deleted", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())

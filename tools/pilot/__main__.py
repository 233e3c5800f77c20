"""make pilot: runs examples/pilot from the assessment to the report, on Trainium and GPU nodes that the lab boots.

It runs in the lab's namespaces: `python -m tools.lab tools.pilot`. All nodes compute on CPUs, so no number is a
measurement of Trainium or of a GPU.
"""

import json
import shutil
import sys
from pathlib import Path

from tools.demo.commands import CommandFailedError, Commands
from tools.lab.hypervisor import Hypervisor
from tools.lab.laboratory import REGION, laboratory
from tools.lab.machine import may_raise_limits
from tools.lab.paths import REPOSITORY, SHOWN
from tools.lab.plans import LIMITS
from tools.lab.pytorch import with_torchrun
from trainium_cli.exit_codes import ExitCode
from trainium_cli.terminal import console
from trainium_local.environment import ACCOUNT_ID

PLACE = Path("build/pilot")
PRICES = f"""\
product,instance_type,region,usd,date,source
on-demand,g6e.xlarge,{REGION},1.861,2026-07-20,"list price in us-east-1, assumed here"
"""
"""Prices for the budget of the pilot. Results of stand-ins have no price."""

GPU_CIDR = "10.1.0.0/16"
"""Addresses of the GPU cluster. All nodes of the lab are on one network, so clusters must not share addresses."""

UNKNOWN = (ExitCode.UNKNOWN,)
"""The exit code of `trn tco`, as nothing compiles on a CPU, and of `trn report`, as stand-ins decide nothing."""


def main() -> int:
    shutil.rmtree(REPOSITORY / PLACE, ignore_errors=True)
    try:
        with laboratory() as lab, Hypervisor(lab) as hypervisor:
            hypervisor.prepare(with_torchrun)
            _pilot(Commands(console()))
            nodes = hypervisor.started
    except KeyboardInterrupt:
        return _failed("interrupted")
    except CommandFailedError as error:
        return _failed(str(error))
    shown = f"{nodes} nodes booted; {PLACE}/pilot/report.html has the report, with numbers of CPUs only,"
    SHOWN.write_text(shown)
    return 0


def _pilot(run: Commands) -> None:
    folder = REPOSITORY / PLACE
    asked = ["--type", "trn1.2xlarge", "--nodes", "1", "--name", "lm", "--region", REGION]
    run.trn("init", str(PLACE), "--yes", *asked, cwd=REPOSITORY)
    shutil.copytree(REPOSITORY / "examples/pilot", folder, dirs_exist_ok=True)
    shutil.copytree(REPOSITORY / "examples/lm", folder / "lm")
    (folder / "prices.csv").write_text(PRICES)
    suppressed = {} if may_raise_limits() else {"trn:suppress_checks": ",".join(LIMITS)}
    _set(folder / "cdk.json", {"trn:prices": "prices.csv", **suppressed})
    run.trn("baseline", "--output", "gpu", cwd=folder)
    _set(folder / "gpu/cdk.json", {"trn:vpc_cidr": GPU_CIDR, **suppressed})
    run.cdk("bootstrap", f"aws://{ACCOUNT_ID}/{REGION}", cwd=folder)
    run.trn("pilot", "pilot.toml", "--yes", cwd=folder)
    run.trn("tco", "tco.toml", "--output", "pilot/evidence", codes=UNKNOWN, cwd=folder)
    shutil.copy(folder / "contract.toml", folder / "pilot/evidence")
    run.trn("report", "pilot/evidence", "--output", "pilot/report.html", codes=UNKNOWN, cwd=folder)


def _set(file: Path, settings: dict[str, str]) -> None:
    """Change settings of a cdk.json."""
    content = json.loads(file.read_text())
    content["context"] |= settings
    file.write_text(json.dumps(content, indent=2) + "\n")


def _failed(reason: str) -> int:
    print(f"\n{reason}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())

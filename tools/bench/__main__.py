"""make bench: what the tools cost, as ratios from one run on one machine."""

import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from tools.bench.benchmarks import ALL, PROJECT
from tools.bench.result import Result
from tools.bench.timing import CannotMeasureError
from tools.demo.private_aws import private_aws
from trainium_cli.terminal import console, table
from trainium_core import PlanError
from trainium_core.plan.context import plan_from_cdk
from trainium_local.environment import NotTheEmbeddedAwsError
from trainium_local.lifecycle import LocalError

RESULTS = PROJECT / ".trn" / "bench.json"


def main() -> int:
    sys.stdout.reconfigure(line_buffering=True)  # pyright: ignore[reportAttributeAccessIssue]
    started = time.monotonic()
    results: list[Result] = []
    try:
        plan = plan_from_cdk(PROJECT)
        # All of it: not even `cdk synth` shall find credentials and look somewhere.
        with private_aws(PROJECT, plan.region) as aws:
            for benchmark in ALL:
                console().print(f"  {benchmark.__name__.replace('_', ' ')} ...", style="dim")
                results += benchmark(aws)
    except (CannotMeasureError, PlanError, LocalError, NotTheEmbeddedAwsError) as error:
        print(f"{error}\nmake bench: failed", file=sys.stderr)
        return 1
    _show(results)
    _write(results, RESULTS)
    met = sum(result.met for result in results)
    took = f"{time.monotonic() - started:.0f} s"
    where = RESULTS.relative_to(PROJECT)
    console().print(f"make bench: {met} of {len(results)} aims met, results in {where}, in {took}", style="bold")
    return 0


def _show(results: Sequence[Result]) -> None:
    rows = [
        (one.name, f"{one.value:.2f}", f"{one.aim:g}", "yes" if one.met else "NO", one.found, one.method)
        for one in results
    ]
    columns = ["Benchmark", "Figure", "At most", "Met", "Found", "How"]
    console().print(table(columns, rows, right=["Figure", "At most"], wrapping=["Benchmark", "Found", "How"]))


def _write(results: Sequence[Result], file: Path) -> None:
    document = {
        "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "processors": os.cpu_count(),
        "load": os.getloadavg()[0],
        "results": [{**asdict(one), "met": one.met} for one in results],
    }
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())

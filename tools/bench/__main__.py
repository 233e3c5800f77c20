"""make bench: measures imports, templates, synthesis, deployment, `trn up`, `trn assess`, uploads, JobSets, samples."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from tools.bench.assess_speed import assess_speed
from tools.bench.checkpoint_speed import checkpoint_speed
from tools.bench.import_speed import import_speed
from tools.bench.job_set_speed import job_set_speed
from tools.bench.sampler_speed import sampler_speed
from tools.bench.up_speed import up_speed
from tools.demo.private_aws import PrivateAws, private_aws
from trainium_cli.terminal import console, table
from trainium_core import PlanError
from trainium_core.naming import STACK_NAME
from trainium_core.plan.context import plan_from_cdk
from trainium_local.environment import ACCOUNT_ID, NotTheEmbeddedAwsError
from trainium_local.lifecycle import LocalError

PROJECT = Path(__file__).parents[2]
RESULTS = PROJECT / ".trn" / "bench.json"
RUNS = 3
FEW, MANY = 1, 1000

Figure = tuple[str, str]
"""A measurement and its result."""


class CannotMeasureError(Exception):
    """A command failed; the message contains its output."""


def template_size(aws: PrivateAws) -> Iterator[Figure]:
    """The growth of the template from one node to a thousand."""
    few, many = (_template(aws.folder / f"{nodes}-nodes", nodes) for nodes in (FEW, MANY))
    differing = {re.sub(r"\d+", "#", line) for line in few} ^ {re.sub(r"\d+", "#", line) for line in many}
    characters = f"{sum(map(len, few)):,} and {sum(map(len, many)):,} characters"
    yield f"template of {FEW} and of {MANY:,} nodes", f"{characters}, {len(differing)} lines differ in more than digits"


def synthesis(aws: PrivateAws) -> Iterator[Figure]:
    """Synthesise our app and the smallest one, alternately, so that other load affects both."""
    apps = [("app.py", aws.folder / "ours"), ("tools/bench/smallest_app.py", aws.folder / "smallest")]
    rounds = [[_synth(*app) for app in apps] for _ in range(RUNS + 1)][1:]
    ours, least = (median(times) for times in zip(*rounds, strict=True))
    yield f"cdk synth of {STACK_NAME}, of an empty stack", f"{ours:.2f} s, {least:.2f} s, medians of {RUNS}"


def deployment(aws: PrivateAws) -> Iterator[Figure]:
    """Deploy and destroy with the CDK CLI, including its start but not synthesis."""
    assembly = aws.folder / "deployment"
    _synth("app.py", assembly)
    _cdk("bootstrap", f"aws://{ACCOUNT_ID}/{aws.region}", folder=aws.folder)
    app = ("--app", str(assembly))
    times = [
        (
            _cdk("deploy", STACK_NAME, *app, "--require-approval", "never", folder=aws.folder),
            _cdk("destroy", STACK_NAME, *app, "--force", folder=aws.folder),
        )
        for _ in range(RUNS)
    ]
    deploy, destroy = (median(seconds) for seconds in zip(*times, strict=True))
    yield "cdk deploy, cdk destroy on the embedded AWS", f"{deploy:.1f} s, {destroy:.1f} s, medians of {RUNS}"


ALL = (
    import_speed,
    template_size,
    synthesis,
    deployment,
    up_speed,
    assess_speed,
    checkpoint_speed,
    job_set_speed,
    sampler_speed,
)


def main() -> int:
    started = time.monotonic()
    figures: list[Figure] = []
    try:
        plan = plan_from_cdk(PROJECT)
        # For every command: even `cdk synth` must not find credentials.
        with private_aws(PROJECT, plan.region) as aws:
            for benchmark in ALL:
                print(f"  {benchmark.__name__.replace('_', ' ')} ...", flush=True)
                figures += benchmark(aws)
    except subprocess.CalledProcessError as error:
        print(f"{error}\n{error.stdout}{error.stderr}\nmake bench: failed", file=sys.stderr)
        return 1
    except (CannotMeasureError, PlanError, LocalError, NotTheEmbeddedAwsError) as error:
        print(f"{error}\nmake bench: failed", file=sys.stderr)
        return 1
    console().print(table(["Measured", "Found"], figures, wrapping=["Measured", "Found"]))
    _write(figures)
    print(f"make bench: results in {RESULTS.relative_to(PROJECT)}, in {time.monotonic() - started:.0f} s")
    return 0


def _write(figures: Sequence[Figure]) -> None:
    document = {
        "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "processors": os.cpu_count(),
        "load": os.getloadavg()[0],
        "found": dict(figures),
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(document, indent=2) + "\n")


def _cdk(*arguments: str, folder: Path) -> float:
    """Run the CDK CLI. Returns its duration in seconds; raises CannotMeasureError if it fails."""
    command = ["cdk", *arguments, "--no-notices"]
    started = time.monotonic()
    run = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if run.returncode:
        raise CannotMeasureError(f"{' '.join(command)}: exit code {run.returncode}\n{run.stdout}")
    return time.monotonic() - started


def _synth(script: str, assembly: Path, *options: str) -> float:
    """`cdk synth` of an app with the context of our cdk.json."""
    app = f"{sys.executable} {script}"
    return _cdk("synth", "--quiet", "--app", app, "--output", str(assembly), *options, folder=PROJECT)


def _template(assembly: Path, nodes: int) -> list[str]:
    """The lines of the template for a number of nodes."""
    _synth("app.py", assembly, "--context", f"trn:nodes={nodes}")
    return (assembly / f"{STACK_NAME}.template.json").read_text().splitlines()


if __name__ == "__main__":
    sys.exit(main())

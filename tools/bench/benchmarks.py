"""The benchmarks: each is a ratio or a time of its own, with its aim."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from tools.bench.command_line import processor_time
from tools.bench.compile_cache import compile_cache
from tools.bench.library import share_of_a_fleet
from tools.bench.node_requests import requests_of_nodes
from tools.bench.preflight import preflight_over_regions
from tools.bench.result import Result
from tools.bench.timing import CannotMeasureError, Command, medians, seconds
from tools.demo.private_aws import PrivateAws
from trainium_core.naming import STACK_NAME
from trainium_local.environment import ACCOUNT_ID

PROJECT = Path(__file__).parents[2]
PCLUSTER = PROJECT / ".venv-bench" / "bin" / "pcluster"

SYNTH_RUNS = 5
START_RUNS = 9
DEPLOY_RUNS = 3
FEW, MANY = 1, 1000


def synthesis(aws: PrivateAws) -> Iterator[Result]:
    """Our app against the smallest one."""
    ours = _synth("app.py", aws.folder / "ours")
    smallest = _synth("tools/bench/smallest_app.py", aws.folder / "smallest")
    took, least = medians(ours, smallest, runs=SYNTH_RUNS)
    yield Result(
        name=f"synthesis of {STACK_NAME} / of an empty stack",
        value=took / least,
        aim=1.3,
        found=f"{took:.2f} s / {least:.2f} s",
        method=f"medians of {SYNTH_RUNS} runs of `cdk synth` each, in turn, with the same feature flags and "
        "validation; ours with its own options for Node.js",
    )


def start_of_the_command(aws: PrivateAws) -> Iterator[Result]:
    """`trn --help` against ParallelCluster's CLI telling its version."""
    if not PCLUSTER.exists():
        raise CannotMeasureError(f"{PCLUSTER} is not there; make it with: make bench-env")
    ours = Command(words=("trn", "--help"), folder=aws.folder)
    theirs = Command(words=(str(PCLUSTER), "version"), folder=aws.folder)
    took, compared = medians(ours, theirs, runs=START_RUNS)
    yield Result(
        name="trn --help / pcluster version",
        value=took / compared,
        aim=0.3,
        found=f"{took * 1000:.0f} ms / {compared * 1000:.0f} ms",
        method=f"medians of {START_RUNS} runs each, in turn, after one that is not counted",
    )


def size_of_the_template(aws: PrivateAws) -> Iterator[Result]:
    """How much more template a thousand nodes take than one."""
    few, many = (_template(aws.folder / f"{nodes}-nodes", nodes) for nodes in (FEW, MANY))
    differing = set(_without_digits(few)) ^ set(_without_digits(many))
    yield Result(
        name=f"lines of template that differ in more than digits, {FEW} and {MANY:,} nodes",
        value=len(differing),
        aim=0,
        found=f"{sum(map(len, few)):,} and {sum(map(len, many)):,} characters, {len(few)} and {len(many)} lines",
        method="the two templates, with every run of digits taken for the same, line by line",
    )


def deployment(aws: PrivateAws) -> Iterator[Result]:
    """The CDK CLI on the embedded AWS, from an assembly that is there already."""
    assembly = aws.folder / "deployment"
    _synth("app.py", assembly).run()
    _cdk("bootstrap", f"aws://{ACCOUNT_ID}/{aws.region}", folder=aws.folder).run()
    deploy = _cdk("deploy", STACK_NAME, "--app", str(assembly), "--require-approval", "never", folder=aws.folder)
    destroy = _cdk("destroy", STACK_NAME, "--app", str(assembly), "--force", folder=aws.folder)
    pairs = [(seconds(deploy.run), seconds(destroy.run)) for _ in range(DEPLOY_RUNS)]
    deployed, destroyed = zip(*pairs, strict=True)
    for name, times in (("cdk deploy", deployed), ("cdk destroy", destroyed)):
        yield Result(
            name=f"{name} {STACK_NAME} on the embedded AWS, in seconds",
            value=median(times),
            aim=5,
            found=f"{min(times):.1f} to {max(times):.1f} s",
            method=f"median of {DEPLOY_RUNS} runs of the CDK CLI, its start included, synthesis not",
        )


ALL = (
    size_of_the_template,
    start_of_the_command,
    processor_time,
    synthesis,
    share_of_a_fleet,
    preflight_over_regions,
    deployment,
    requests_of_nodes,
    compile_cache,
)


def _cdk(*arguments: str, folder: Path) -> Command:
    return Command(words=("cdk", *arguments, "--no-notices"), folder=folder)


def _synth(script: str, assembly: Path, *options: str) -> Command:
    """`cdk synth` of an app with the context of our cdk.json."""
    app = f"{sys.executable} {script}"
    return _cdk("synth", "--quiet", "--app", app, "--output", str(assembly), *options, folder=PROJECT)


def _template(assembly: Path, nodes: int) -> list[str]:
    """The lines of the template for a number of nodes."""
    _synth("app.py", assembly, "--context", f"trn:nodes={nodes}").run()
    return (assembly / f"{STACK_NAME}.template.json").read_text().splitlines()


def _without_digits(lines: list[str]) -> list[str]:
    return [re.sub(r"\d+", "#", line) for line in lines]

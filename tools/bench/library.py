"""What the constructs cost an app that uses them: importing them, and a fleet's share of synthesis."""

import sys
from collections.abc import Iterator
from pathlib import Path

from tools.bench.result import Result
from tools.bench.timing import Command, medians, processors
from tools.demo.private_aws import PrivateAws

IMPORT_RUNS = 9
SYNTH_RUNS = 5
WITH_BYTECODE = ("env", "-u", "PYTHONDONTWRITEBYTECODE")
"""As an app has it from its second run on: what is measured is no compiling."""
CDK = "import aws_cdk, constructs"
WEB_APP = Path(__file__).with_name("web_app.py")


def imports(aws: PrivateAws) -> Iterator[Result]:
    """`import trainium_cdk` in an app that has imported the CDK; what it exports is loaded when it is first used."""
    with_ours, without = (
        Command(words=(*WITH_BYTECODE, sys.executable, "-c", code), folder=aws.folder)
        for code in (f"{CDK}, trainium_cdk", CDK)
    )
    took, least = medians(with_ours, without, runs=IMPORT_RUNS, clock=processors)
    yield Result(
        name="processor seconds that importing trainium_cdk adds to importing aws_cdk",
        value=took - least,
        aim=0.15,
        found=f"{took:.2f} s / {least:.2f} s",
        method=f"processor time, medians of {IMPORT_RUNS} processes each, in turn, after one that is not counted",
    )


def share_of_a_fleet(aws: PrivateAws) -> Iterator[Result]:
    """A web app with a load balancer and a fleet against the same app without."""
    synth = (*WITH_BYTECODE, "cdk", "synth", "--quiet", "--app", f"{sys.executable} {WEB_APP}")
    without = Command(words=synth, folder=aws.folder)
    with_fleet = Command(words=("env", "FLEET=1", *synth), folder=aws.folder)
    took, least = medians(with_fleet, without, runs=SYNTH_RUNS, clock=processors)
    yield Result(
        name="synthesis of a web app with a fleet / without",
        value=took / least,
        aim=1.25,
        found=f"{took:.2f} s / {least:.2f} s",
        method=f"processor time, medians of {SYNTH_RUNS} runs of `cdk synth` each, in turn, one before not counted",
    )

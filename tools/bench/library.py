"""What the constructs cost an app that uses them: a fleet's share of synthesis."""

import sys
from collections.abc import Iterator
from pathlib import Path

from tools.bench.result import Result
from tools.bench.timing import Command, medians, processors
from tools.demo.private_aws import PrivateAws

SYNTH_RUNS = 5
WITH_BYTECODE = ("env", "-u", "PYTHONDONTWRITEBYTECODE")
"""As an app has it from its second run on: what is measured is no compiling."""
WEB_APP = Path(__file__).with_name("web_app.py")


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

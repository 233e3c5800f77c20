"""What commands of `trn` take of this machine's processor, beside what nobody who uses click or boto3 can go below."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from tools.bench.result import Result
from tools.bench.timing import CannotMeasureError
from tools.demo.private_aws import PrivateAws
from trainium_core.audit.listings.registry import LISTINGS
from trainium_local.environment import ACCOUNT_ID

PROJECT = Path(__file__).parents[2]
RUNS = 7
OFFLINE = ("--help", "types", "settings", "plan", "explain VcpuLimitExceeded")
ASKING = ("cost --no-cost-explorer", "audit", "capacity")
LISTING = {"cost --no-cost-explorer": True, "audit": False}
"""Of the commands that list all of an account: whether only the kinds that an estimate holds."""

CLICK = (sys.executable, "-c", "import click")
BARE_CALL = (sys.executable, "-c", "import boto3; boto3.client('sts').get_caller_identity()")

_ANSWERED = (0, 1, 3)
"""Exit codes of a command that has said what it was asked: done, not ready, or not all could be known."""


def processor_time(aws: PrivateAws) -> Iterator[Result]:
    """Commands that ask nobody against Python with click; those that ask AWS against one call of boto3.

    What asks for everything in an account, against bare boto3 that asks the same and does nothing with the answers.
    """
    method = f"medians of {RUNS} runs each, in turn, user and system, bytecode there; the client alone, no server"
    for commands, floor, named, aim in (
        (OFFLINE, CLICK, "Python with click alone", 0.1),
        (ASKING, BARE_CALL, "one call of bare boto3", 0.5),
    ):
        for command in commands:
            listings = LISTING.get(command)
            bare = () if listings is None else (_bare_listings(aws.region, only_estimated=listings),)
            ours, least, *same_listings = _medians(("trn", *command.split()), floor, *bare)
            yield Result(
                name=f"trn {command}, in seconds of CPU",
                value=ours,
                aim=aim,
                found=f"{ours:.2f} s, {ours / least:.1f} x {named}, which takes {least:.2f} s",
                method=method,
            )
            for seconds in same_listings:
                yield Result(
                    name=f"trn {command} / its listings by bare boto3, in CPU",
                    value=ours / seconds,
                    aim=1,
                    found=f"{ours:.2f} s / {seconds:.2f} s",
                    method=f"{method}; bare boto3 makes the listings alone, one after the other",
                )


def _bare_listings(region: str, *, only_estimated: bool) -> tuple[str, ...]:
    """The command that asks AWS for the same kinds by bare boto3."""
    questions = [
        (
            one.service,
            one.endpoint_region,
            one.operation,
            json.loads(json.dumps(arguments).replace("{account}", ACCOUNT_ID)),
        )
        for one in LISTINGS
        if one.in_estimates or not only_estimated
        for arguments in (one.arguments, *one.again)
    ]
    return (sys.executable, "tools/bench/bare_listings.py", region, json.dumps(questions))


def _medians(*commands: tuple[str, ...]) -> list[float]:
    """Of each command, run in turn with the others."""
    rounds = [[_cpu_seconds(command) for command in commands] for _ in range(RUNS + 1)][1:]
    return [median(one) for one in zip(*rounds, strict=True)]


def _cpu_seconds(words: tuple[str, ...]) -> float:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = os.times()
    ran = subprocess.run(
        words, cwd=PROJECT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    after = os.times()
    if ran.returncode not in _ANSWERED:
        raise CannotMeasureError(f"{' '.join(words)}: exit code {ran.returncode}\n{ran.stdout}{ran.stderr}")
    return after.children_user + after.children_system - before.children_user - before.children_system

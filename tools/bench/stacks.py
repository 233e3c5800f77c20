"""A hundred small stacks, against plain moto, which checks nothing."""

import json
from collections.abc import Iterator
from statistics import median

from tools.bench.result import Result
from tools.bench.timing import seconds
from tools.demo.private_aws import PrivateAws
from trainium_cli.score.account import Account, embedded_aws, plain_moto
from trainium_cli.score.stack import Stack

STACKS = 100
RUNS = 3
TEMPLATE = json.dumps(
    {
        "Resources": {
            "Topic": {"Type": "AWS::SNS::Topic"},
            "Logs": {"Type": "AWS::Logs::LogGroup"},
            "Setting": {
                "Type": "AWS::SSM::Parameter",
                "Properties": {
                    "Name": {"Fn::Sub": "/bench/${AWS::StackName}"},  # without, plain moto breaks off
                    "Type": "String",
                    "Value": {"Fn::Sub": "${Topic} ${Logs}"},
                },
            },
        }
    }
)


def many_stacks(_aws: PrivateAws) -> Iterator[Result]:
    """Each on a server of its own, in turn, so that a busy moment hits both."""
    ours, plain = Account(embedded_aws), Account(plain_moto)
    try:
        taken = [(_creation(ours), _creation(plain)) for _ in range(RUNS + 1)]
    finally:
        ours.stop()
        plain.stop()
    took, least = (median(times) for times in zip(*taken[1:], strict=True))
    yield Result(
        name=f"{STACKS} stacks of three resources, created one after the other / by plain moto",
        value=took / least,
        aim=5,
        found=f"{took:.1f} s / {least:.1f} s",
        method=f"medians of {RUNS} runs each, in turn, after one that is not counted",
    )


def _creation(account: Account) -> float:
    stacks = [Stack(account, f"stack-{number}", limit=60, parameters={}, capabilities=()) for number in range(STACKS)]
    took = seconds(lambda: [stack.create(TEMPLATE) for stack in stacks])
    for stack in stacks:
        stack.delete()
    return took

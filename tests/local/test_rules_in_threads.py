"""The rules of several requests at once: none disturbs another."""

import json
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from trainium_local.rules import policies, state_machines
from trainium_local.rules.rule import Target

TARGET = Target(account="123456789012", region="us-west-2", new=True)
STATEMENT = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": ["kms:*"], "Resource": "*"}
KEY = {"KeyPolicy": {"Version": "2012-10-17", "Statement": [STATEMENT] * 3}}
STATES = {f"S{number}": {"Type": "Pass", "Next": f"S{number + 1}"} for number in range(3)} | {"S3": {"Type": "Succeed"}}
MACHINE = {"DefinitionString": json.dumps({"StartAt": "S0", "States": STATES})}


@pytest.fixture
def threads_take_turns_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("threads_take_turns_often")
@pytest.mark.parametrize(
    "check",
    [
        lambda: policies.check("AWS::KMS::Key", KEY, TARGET),
        lambda: state_machines.check("AWS::StepFunctions::StateMachine", MACHINE, TARGET),
    ],
    ids=["policy", "state machine"],
)
def test_what_is_valid_is_valid_in_every_thread(check: Callable[[], None]) -> None:
    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(check) for _ in range(24)]:
            future.result()

"""The rules of several requests at once: none disturbs another."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from trainium_local.rules import policies
from trainium_local.rules.rule import Target

TARGET = Target(account="123456789012", region="us-west-2", new=True)
STATEMENT = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": ["kms:*"], "Resource": "*"}
KEY = {"KeyPolicy": {"Version": "2012-10-17", "Statement": [STATEMENT] * 3}}


@pytest.fixture
def threads_take_turns_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("threads_take_turns_often")
def test_valid_policy_is_valid_in_every_thread() -> None:
    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(policies.check, "AWS::KMS::Key", KEY, TARGET) for _ in range(24)]:
            future.result()

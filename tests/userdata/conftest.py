"""Fixtures of the user data's tests."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.userdata.aws_stand_in import AwsStandIn
from tests.userdata.booting_node import BootingNode
from tests.userdata.plans import LOCATIONS
from trainium_core.plan import Plan

NodeMaker = Callable[[Plan], BootingNode]


@pytest.fixture
def aws() -> Iterator[AwsStandIn]:
    with AwsStandIn(region=LOCATIONS.region) as services:
        yield services


@pytest.fixture
def node_for(tmp_path: Path, aws: AwsStandIn) -> NodeMaker:
    return lambda plan: BootingNode(tmp_path, plan, aws)

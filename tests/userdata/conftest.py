"""Fixtures of the user data's tests."""

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.userdata.aws_stand_in import AwsStandIn
from tests.userdata.node_stand_in import NodeStandIn
from tests.userdata.plans import PLACES
from trainium_core.plan import Plan

NodeMaker = Callable[[Plan], NodeStandIn]


@pytest.fixture(scope="session")
def _curl_that_signs() -> None:
    """Nodes have curl 8; from 7.88 on it signs what S3 asks for (curl issue 8810)."""
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed here")
    said = subprocess.run(["curl", "--version"], capture_output=True, text=True, check=True).stdout
    version = re.match(r"curl (\d+)\.(\d+)", said)
    if version is None or (int(version[1]), int(version[2])) < (7, 88):
        pytest.skip(f"curl is too old here to sign for S3: {said.split(' (')[0]}")


@pytest.fixture
def aws() -> Iterator[AwsStandIn]:
    with AwsStandIn(region=PLACES.region) as services:
        yield services


@pytest.fixture
def node_for(tmp_path: Path, aws: AwsStandIn, _curl_that_signs: None) -> NodeMaker:
    return lambda plan: NodeStandIn(tmp_path, plan, aws)

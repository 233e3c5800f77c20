"""The function that ends the host which compiles ahead, against moto's Auto Scaling."""

from typing import Any

import pytest

from tests.runtime.handlers.conftest import REGION
from tests.runtime.handlers.fleet import GROUP, Fleet, client
from trainium_runtime.handlers.precompile_end import end_host


def report_of(instance: str) -> dict[str, Any]:
    return {"detail": {"object": {"key": f"precompile/{instance}.json"}}}


@pytest.fixture
def host() -> Fleet:
    return Fleet(nodes=1, region=REGION)


def test_the_report_of_the_host_ends_it(host: Fleet) -> None:
    assert end_host(report_of(host.instances[0]), client("autoscaling"), GROUP)
    assert host.instances == []


def test_a_late_report_of_an_earlier_host_does_not_end_the_next(host: Fleet) -> None:
    assert not end_host(report_of("i-0123456789abcdef0"), client("autoscaling"), GROUP)
    assert len(host.instances) == 1

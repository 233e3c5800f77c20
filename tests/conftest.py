"""Settings for all tests."""

from functools import cache

import boto3
import botocore.session
import pytest
from hypothesis import HealthCheck, settings

from tests import shared

# On a busy machine, an example may take any time. In CI, Hypothesis's own settings still apply: every run tries the
# same examples.
settings.register_profile("any time", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any time")

# One loader for all sessions: reading the models again for each takes two thirds of the time of a test that calls moto.
botocore.session.create_loader = cache(botocore.session.create_loader)


def pytest_configure(config: pytest.Config) -> None:
    if not _is_worker(config):
        shared.begin()


def pytest_unconfigure(config: pytest.Config) -> None:
    if not _is_worker(config):
        shared.end()


def _is_worker(config: pytest.Config) -> bool:
    """Whether this is a worker process of pytest-xdist."""
    return hasattr(config, "workerinput")


@pytest.fixture(scope="module", autouse=True)
def _credentials_of_no_other_module() -> None:
    """`boto3.client` keeps the first credentials that it found in this process, across tests."""
    boto3.DEFAULT_SESSION = None


def pytest_itemcollected(item: pytest.Item) -> None:
    """The order of a set differs between the workers of pytest-xdist."""
    parameters: dict[str, object] = getattr(getattr(item, "callspec", None), "params", {})
    if any(isinstance(one, set | frozenset) and str(one) in item.name for one in parameters.values()):
        raise pytest.UsageError(f"{item.nodeid}: the id shows a set, whose order differs between processes")


def pytest_make_parametrize_id(val: object, argname: str) -> None:
    """pytest-xdist runs nothing if workers collect different ids, for example from bytes that contain a time."""
    if isinstance(val, bytes) and not (val.isascii() and val.decode("ascii").isprintable()):
        raise pytest.UsageError(f"the parameter {argname} has unprintable bytes: set the ids of its cases")

"""What holds for every test."""

import gc
from functools import cache

import boto3
import botocore.session
import pytest
from hypothesis import HealthCheck, settings

from tests import kept, shared
from tests.verdicts import Verdicts
from trainium_local.services.lambda_zygote import share_models

# Invariants are judged by their outcome: on a busy machine an example may take any time. What Hypothesis itself chooses
# where CI is set stays: there every run tries the same examples.
settings.register_profile("any time", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any time")


# The models of a service are the same for every session: read once, not for each session of each test.
botocore.session.create_loader = cache(botocore.session.create_loader)
share_models()

# Until all tests are collected: what that imports and makes stays, and to look for garbage in it takes a sixth of it.
gc.disable()


def pytest_configure(config: pytest.Config) -> None:
    if not _is_worker(config):
        shared.begin()
        if (cache := getattr(config, "cache", None)) is not None:  # with `-p no:cacheprovider` there is none
            kept.begin(cache.mkdir("assemblies"))


def pytest_unconfigure(config: pytest.Config) -> None:
    if not _is_worker(config):
        shared.end()


def _is_worker(config: pytest.Config) -> bool:
    """Whether this is a process that pytest-xdist has started."""
    return hasattr(config, "workerinput")


@pytest.fixture(scope="session")
def verdicts(pytestconfig: pytest.Config) -> Verdicts:
    """In pytest's cache, which `pytest --cache-clear` empties."""
    cache = pytestconfig.cache
    assert cache is not None
    return Verdicts(cache.mkdir("verdicts"))


@pytest.fixture(scope="module", autouse=True)
def _credentials_of_no_other_module() -> None:
    """``boto3.client`` keeps the credentials that it found first, in any test of the same process."""
    boto3.DEFAULT_SESSION = None


def pytest_collection_finish() -> None:
    """What is imported by now stays: the collector need not go over it again and again, nor often over the rest."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*shared.GARBAGE_THRESHOLDS)
    gc.enable()


def pytest_itemcollected(item: pytest.Item) -> None:
    """The order of a set differs between the workers of pytest-xdist."""
    parameters: dict[str, object] = getattr(getattr(item, "callspec", None), "params", {})
    if any(isinstance(one, set | frozenset) and str(one) in item.name for one in parameters.values()):
        raise pytest.UsageError(f"{item.nodeid}: the id shows a set, whose order differs between processes")


def pytest_make_parametrize_id(val: object, argname: str) -> None:
    """pytest-xdist runs nothing when two workers collect different ids, as bytes with a time or a boundary give."""
    if isinstance(val, bytes) and not (val.isascii() and val.decode("ascii").isprintable()):
        raise pytest.UsageError(f"a parameter {argname} holds unprintable bytes: give its cases ids")

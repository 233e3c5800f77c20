"""One embedded AWS per test process, started as a user starts it.

In a process of its own: it patches moto, and moto's `mock_aws`, which other tests use, empties all backends.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import boto3
import pytest

from trainium_local import lifecycle
from trainium_local.environment import FAKE_ACCESS_KEY_ID, FAKE_SECRET_ACCESS_KEY
from trainium_local.server import Settings


@dataclass(frozen=True, kw_only=True)
class EmbeddedAws:
    """A running server; `client` gives a boto3 client on it, the same for the same service and region."""

    endpoint: str
    region: str
    log: Path

    def client(self, service: str, region: str | None = None) -> Any:
        return _client(self.endpoint, service, region or self.region)


@cache
def _client(endpoint: str, service: str, region: str) -> Any:
    return boto3.client(
        service,
        endpoint_url=endpoint,
        region_name=region,
        aws_access_key_id=FAKE_ACCESS_KEY_ID,
        aws_secret_access_key=FAKE_SECRET_ACCESS_KEY,
    )


@pytest.fixture(scope="session")
def start_embedded_aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Settings], EmbeddedAws]]:
    """Start a server with settings of one's own; all end with the test process."""
    folders: list[Path] = []

    def start(settings: Settings) -> EmbeddedAws:
        folders.append(tmp_path_factory.mktemp("trn-local"))
        health = lifecycle.start(folders[-1], settings).health
        return EmbeddedAws(endpoint=health.endpoint, region=health.region, log=Path(health.log))

    yield start
    for folder in folders:
        lifecycle.stop(folder)


@pytest.fixture(scope="session")
def embedded_aws(start_embedded_aws: Callable[[Settings], EmbeddedAws]) -> EmbeddedAws:
    return start_embedded_aws(Settings())


CHOSEN = Settings(quotas={"L-2C3B7624": 128}, fail_nodes=1)


@pytest.fixture(scope="session")
def chosen_aws(start_embedded_aws: Callable[[Settings], EmbeddedAws]) -> EmbeddedAws:
    """A server with the settings CHOSEN, started from an environment that would lead it astray."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("MOTO_ACCOUNT_ID", "999999999999")
        environment.setenv("AWS_PROFILE", "production")
        environment.setenv("AWS_ENDPOINT_URL", "https://aws.invalid")
        return start_embedded_aws(CHOSEN)


@pytest.fixture(autouse=True)
def _no_aws_of_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)

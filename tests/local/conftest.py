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
from trainium_local.environment import Connection
from trainium_local.server import Settings


@dataclass(frozen=True, kw_only=True)
class EmbeddedAws:
    """A running server; `client` gives a boto3 client on it, the same for the same service and region."""

    connection: Connection
    log: Path

    @property
    def endpoint(self) -> str:
        return self.connection.endpoint

    @property
    def region(self) -> str:
        return self.connection.region

    def client(self, service: str, region: str | None = None) -> Any:
        return _client(self.connection, service, region or self.region)


@cache
def _client(connection: Connection, service: str, region: str) -> Any:
    return boto3.client(
        service,
        endpoint_url=connection.endpoint,
        region_name=region,
        aws_access_key_id=connection.credentials.access_key_id,
        aws_secret_access_key=connection.credentials.secret_access_key,
        aws_session_token=connection.credentials.session_token,
    )


@pytest.fixture(scope="session")
def start_embedded_aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Settings], EmbeddedAws]]:
    """Start a server with settings of one's own; all end with the test process."""
    folders: list[Path] = []

    def start(settings: Settings) -> EmbeddedAws:
        folders.append(tmp_path_factory.mktemp("trn-local"))
        started = lifecycle.start(folders[-1], settings)
        return EmbeddedAws(connection=started.connection, log=Path(started.health.log))

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

"""Servers of the embedded AWS: one for all tests of a process, and others with different settings.

Each server is a separate process because it patches moto, and because moto's `mock_aws`, which other tests use, empties
all backends.
"""

import os
import uuid
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.forked import start_server
from tests.local.ec2_network import Network, clear, make_network
from trainium_local import lifecycle
from trainium_local.environment import Connection
from trainium_local.server import Settings


@dataclass(frozen=True, kw_only=True)
class EmbeddedAws:
    """A running server. `client` returns its boto3 client for a service and region, created once."""

    connection: Connection
    log: Path
    _clients: dict[tuple[str, str], Any] = field(default_factory=dict[tuple[str, str], Any], compare=False, repr=False)

    @property
    def endpoint(self) -> str:
        return self.connection.endpoint

    @property
    def region(self) -> str:
        return self.connection.region

    def client(self, service: str, region: str | None = None) -> Any:
        key = (service, region or self.region)
        if key not in self._clients:
            credentials = self.connection.credentials
            self._clients[key] = boto3.client(
                service,
                endpoint_url=self.endpoint,
                region_name=key[1],
                aws_access_key_id=credentials.access_key_id,
                aws_secret_access_key=credentials.secret_access_key,
                aws_session_token=credentials.session_token,
            )
        return self._clients[key]


@contextmanager
def _servers(tmp_path_factory: pytest.TempPathFactory) -> Generator[Callable[[Settings], EmbeddedAws]]:
    """A function that starts servers. The block stops them at its end: each takes some hundred MB of memory."""
    folders: list[Path] = []

    def start(settings: Settings) -> EmbeddedAws:
        folders.append(tmp_path_factory.mktemp("trn-local"))
        connection = start_server(folders[-1], settings)
        return EmbeddedAws(connection=connection, log=folders[-1] / lifecycle.LOG_FILE)

    try:
        yield start
    finally:
        for folder in folders:
            lifecycle.stop(folder)


@pytest.fixture(scope="module")
def start_embedded_aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Settings], EmbeddedAws]]:
    """A function that starts a server for the module."""
    with _servers(tmp_path_factory) as start:
        yield start


@pytest.fixture(scope="session")
def start_shared_aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Settings], EmbeddedAws]]:
    """A function that starts a server for several modules."""
    with _servers(tmp_path_factory) as start:
        yield start


@pytest.fixture(scope="session")
def embedded_aws(start_shared_aws: Callable[[Settings], EmbeddedAws]) -> EmbeddedAws:
    return start_shared_aws(Settings())


CHOSEN = Settings(quotas={"L-2C3B7624": 128}, fail_nodes=1, no_capacity=("usw2-az1",))


@pytest.fixture(scope="session")
def chosen_aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedAws]:
    """A server with the settings CHOSEN, started from an environment with misleading AWS settings."""
    folder = tmp_path_factory.mktemp("trn-local")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("MOTO_ACCOUNT_ID", "999999999999")
        environment.setenv("AWS_PROFILE", "production")
        environment.setenv("AWS_ENDPOINT_URL", "https://aws.invalid")
        started = lifecycle.start(folder, CHOSEN)
    yield EmbeddedAws(connection=started.connection, log=Path(started.health.log))
    lifecycle.stop(folder)


@pytest.fixture
def network(embedded_aws: EmbeddedAws) -> Iterator[Network]:
    """A network in the default zone. Instances and groups of other tests have ended."""
    made = make_network(embedded_aws, zone_id="usw2-az4")
    clear(made)
    yield made
    clear(made)


@pytest.fixture
def name() -> str:
    """A name that no other test uses."""
    return f"t-{uuid.uuid4().hex[:8]}"


@pytest.fixture(autouse=True)
def _without_aws_settings_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)

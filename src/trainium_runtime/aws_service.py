"""botocore clients with the timeouts and retries of this project."""

from collections import Counter
from collections.abc import Mapping
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

import boto3.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError

from trainium_runtime.aws_errors import WITHOUT_CREDENTIALS
from trainium_runtime.errors import NotSignedInError, UnavailableError

CONNECT_TIMEOUT_SECONDS = 3
READ_TIMEOUT_SECONDS = 10
ATTEMPTS = 3
CLIENT_CONFIG = Config(
    connect_timeout=CONNECT_TIMEOUT_SECONDS,
    read_timeout=READ_TIMEOUT_SECONDS,
    retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
)
"""Timeouts of each attempt of a call, and the maximum number of attempts, including throttled ones."""


class Clients:
    """botocore clients with default credentials, one for each service and region. Thread-safe.

    They share a session, which caches the service descriptions: loading these takes most of the time of creating a
    client.

    Args:
        session: Session of boto3. Default: a new one, created when needed.
    """

    def __init__(self, session: Any = None) -> None:
        self._session = session
        self._clients_by_key: dict[tuple[str, str], Any] = {}
        self._lock = Lock()
        self._calls: Counter[str] = Counter()
        self._counting = Lock()

    def client(self, service: str, region: str) -> Any:
        """The client of a service in a region.

        Raises:
            UnavailableError: The client cannot be created, for example because a profile does not exist.
        """
        with self._lock:  # a session creates one client at a time
            if (service, region) not in self._clients_by_key:
                self._clients_by_key[service, region] = self._create(service, region)
            return self._clients_by_key[service, region]

    def _create(self, service: str, region: str) -> Any:
        try:
            self._session = self._session or boto3.session.Session()
            client = self._session.client(service, region_name=region, config=CLIENT_CONFIG)
        except WITHOUT_CREDENTIALS as error:
            raise NotSignedInError(str(error)) from error
        except (BotoCoreError, ValueError) as error:  # ValueError: an endpoint that is not a URL
            raise UnavailableError(str(error)) from error
        client.meta.events.register("before-call", self._count)
        return client

    @property
    def calls(self) -> Mapping[str, int]:
        """The number of calls so far by permission, such as ec2:DescribeVpcs."""
        with self._counting:
            return dict(sorted(self._calls.items()))

    def _count(self, *, model: Any, **_: Any) -> None:
        with self._counting:
            self._calls[f"{model.service_model.service_name}:{model.name}"] += 1


class AwsService:
    """Calls the APIs of an account in one region.

    Args:
        region: The region.
        clients: Clients, which objects for several regions can share. Default: new clients.
    """

    def __init__(self, region: str, *, clients: Clients | None = None) -> None:
        self.region = region
        self._clients = clients or Clients()

    def client(self, service: str) -> Any:
        return self._clients.client(service, self.region)


def is_aws(endpoint: str) -> bool:
    """Whether the URL is one of AWS, and not of an emulator."""
    host = urlsplit(endpoint).hostname or ""
    return host.endswith((".amazonaws.com", ".amazonaws.com.cn", ".api.aws"))

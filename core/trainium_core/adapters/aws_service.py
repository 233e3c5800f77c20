"""How AWS is asked: for how long, how often, and what becomes of an error."""

from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from trainium_core.account import CannotTellError

PATIENCE = Config(connect_timeout=3, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 3})
"""How long any question may take, in seconds and attempts."""

_DENIED = {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"}


class AwsService:
    """Clients for the credentials that boto3 finds, in one region; they may be used from several threads."""

    def __init__(self, region: str) -> None:
        self.region = region
        self._session: boto3.Session | None = None
        self._clients: dict[str, Any] = {}
        self._lock = Lock()

    def client(self, service: str) -> Any:
        with self._lock:  # a session makes one client at a time
            if service not in self._clients:
                self._session = self._session or boto3.Session(region_name=self.region)
                self._clients[service] = self._session.client(service, config=PATIENCE)
            return self._clients[service]


@contextmanager
def asking(permission: str, *, absent: tuple[str, ...] = ()) -> Generator[None]:
    """Turn what can go wrong into CannotTellError, and an error that says `absent` into an end of the block."""
    try:
        yield
    except ClientError as error:
        code, message = error.response["Error"]["Code"], error.response["Error"].get("Message", "")
        if any(sign in f"{code} {message}" for sign in absent):
            return
        if code in _DENIED:
            raise CannotTellError(f"not allowed to look: the permission {permission} is missing") from error
        raise CannotTellError(f"AWS answered {code}: {message}") from error
    except BotoCoreError as error:
        raise CannotTellError(str(error)) from error

"""An embedded AWS for one run of a tool, on a free port and with a temporary state folder."""

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import boto3

from trainium_local import lifecycle
from trainium_local.environment import refuse_unless_loopback, safe_environment, tool_folders
from trainium_local.server import Settings


@dataclass(frozen=True, kw_only=True)
class PrivateAws:
    """A running embedded AWS.

    Attributes:
        folder: A folder for temporary files. It is deleted after the server has stopped.
    """

    endpoint: str
    region: str
    folder: Path

    def client(self, service: str) -> Any:
        """A boto3 client.

        Raises:
            NotTheEmbeddedAwsError: Its endpoint is not on this machine.
        """
        client: Any = self._session.client(service)
        refuse_unless_loopback(client.meta.endpoint_url)
        return client

    @cached_property
    def _session(self) -> Any:
        # boto3's default session may be from an earlier environment.
        return boto3.Session()


@contextmanager
def private_aws(project: Path, region: str) -> Generator[PrivateAws]:
    """Start an embedded AWS, and stop it at the end.

    Meanwhile, the environment variables of this process let it and its children reach only this AWS.

    Raises:
        LocalError: The server does not start, or does not stop in time.
        NotTheEmbeddedAwsError: The server is not on loopback.
    """
    with tempfile.TemporaryDirectory(prefix="trn-demo-") as name:
        folder, own = Path(name), dict(os.environ)
        try:
            connection = lifecycle.start(folder / "aws", Settings(region=region)).connection
            safe = safe_environment(os.environ, connection, tools=tool_folders(project))
            os.environ.clear()
            # Otherwise the CDK CLI's cache in the home folder would contain the fake account.
            os.environ.update(safe, CDK_HOME=str(folder / "cdk"))
            yield PrivateAws(endpoint=connection.endpoint, region=region, folder=folder)
        finally:
            os.environ.clear()
            os.environ.update(own)
            lifecycle.stop(folder / "aws")

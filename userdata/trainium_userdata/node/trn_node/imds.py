"""The instance metadata service, version 2."""

from __future__ import annotations

import json
import os
import time
from typing import NamedTuple

from . import web

TOKEN_SECONDS = 21600

CREDENTIALS_SECONDS = 60
"""How long credentials are cached. New ones exist five minutes before the old ones expire (Amazon EC2 User Guide)."""


class Credentials(NamedTuple):
    access_key_id: str
    secret_access_key: str
    token: str


class Imds:
    """The service. Default endpoint: AWS_EC2_METADATA_SERVICE_ENDPOINT, or the standard address."""

    source = "the metadata service"

    def __init__(self, endpoint: str | None = None, *, retries: int | None = None) -> None:
        address = endpoint or os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or "http://169.254.169.254"
        self._endpoint = address.rstrip("/")
        self.retries = retries
        self._token = ""
        self._credentials: tuple[float, Credentials] | None = None

    def get(self, path: str) -> str | None:
        """The text at a path below /latest/meta-data; None if it does not exist. Raises OSError for other responses."""
        response = web.retry(lambda: self._get(path), (200, 404), self.retries)
        if response.status not in (200, 404):
            raise OSError(f"the metadata service returns {response.status} for {path}")
        return response.body.decode(errors="replace") if response.status == 200 else None

    def credentials(self) -> Credentials:
        """The credentials of the instance's role. Raises OSError if the service returns none."""
        known = self._credentials
        if known and time.monotonic() - known[0] < CREDENTIALS_SECONDS:
            return known[1]
        try:
            document = json.loads(self.document())
            credentials = Credentials(document["AccessKeyId"], document["SecretAccessKey"], document["Token"])
        except (ValueError, LookupError, TypeError):
            raise OSError(f"{self.source} has no credentials") from None
        self._credentials = time.monotonic(), credentials
        return credentials

    def document(self) -> str:
        """The credentials as JSON. Raises OSError or LookupError."""
        folder = "iam/security-credentials/"
        role = (self.get(folder) or "").strip()
        return self.get(folder + role.splitlines()[0]) or ""

    def _get(self, path: str) -> web.Response:
        if not self._token:
            seconds = {"X-aws-ec2-metadata-token-ttl-seconds": str(TOKEN_SECONDS)}
            response = web.send("PUT", f"{self._endpoint}/latest/api/token", seconds)
            if response.status != 200:
                return response
            self._token = response.body.decode("ascii", "replace")
        token = {"X-aws-ec2-metadata-token": self._token}
        response = web.send("GET", f"{self._endpoint}/latest/meta-data/{path}", token)
        if response.status == 401:
            self._token = ""
        return response

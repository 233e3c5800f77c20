"""The instance metadata service, version 2."""

from __future__ import annotations

import json
import os
import time
from typing import NamedTuple

from . import web

TOKEN_SECONDS = 21600

CREDENTIALS_SECONDS = 60
"""How long credentials are cached. New ones are available at least five minutes before the old ones expire (Amazon EC2
user guide, instance metadata: security credentials)."""


class Credentials(NamedTuple):
    access_key_id: str
    secret_access_key: str
    token: str


class Imds:
    """The service, as the source of the credentials for requests to AWS.

    Default endpoint: AWS_EC2_METADATA_SERVICE_ENDPOINT, or the standard address.
    """

    no_credentials = "the metadata service has no credentials of an instance role"

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
        """The credentials of the role. Raises OSError if the service returns none."""
        known = self._credentials
        if known and time.monotonic() - known[0] < CREDENTIALS_SECONDS:
            return known[1]
        try:
            document = json.loads(self.credentials_document())
            credentials = Credentials(document["AccessKeyId"], document["SecretAccessKey"], document["Token"])
        except (ValueError, LookupError, TypeError):
            raise OSError(self.no_credentials) from None
        self._credentials = time.monotonic(), credentials
        return credentials

    def credentials_document(self) -> str | bytes:
        """The credentials as JSON, or another text without any. Raises OSError."""
        folder = "iam/security-credentials/"
        roles = (self.get(folder) or "").split()
        return self.get(folder + roles[0]) or "" if roles else ""

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

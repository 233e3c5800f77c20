"""The credentials of a pod's role, from EKS Pod Identity."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from trn_node import web
from trn_node.imds import CREDENTIALS_SECONDS, Credentials, Imds

ADDRESS, TOKEN_FILE = "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"
"""Variables that EKS sets in a pod: the address of the credentials, and the file with the token for the request. EKS
renews the file (AWS SDKs and Tools Reference Guide, container credential provider)."""


class PodIdentity(Imds):
    """Pod Identity in the place of the metadata service, for requests to AWS."""

    def __init__(self, *, retries: int | None = None) -> None:
        super().__init__(retries=retries)
        self._known: tuple[float, Credentials] | None = None

    def credentials(self) -> Credentials:
        """The credentials of the pod's role. Raises OSError without any."""
        if self._known and time.monotonic() - self._known[0] < CREDENTIALS_SECONDS:
            return self._known[1]
        address = os.environ.get(ADDRESS)
        if not address:
            raise OSError(
                "this pod has no credentials: its service account needs an EKS Pod Identity association, and the "
                "cluster the add-on eks-pod-identity-agent"
            )
        response = web.retry(lambda: self._ask(address), (200,), self.retries)
        try:
            document = json.loads(response.body)
            found = Credentials(document["AccessKeyId"], document["SecretAccessKey"], document["Token"])
        except (ValueError, LookupError, TypeError):
            raise OSError(f"EKS Pod Identity returns no credentials, with status {response.status}") from None
        self._known = time.monotonic(), found
        return found

    def _ask(self, address: str) -> web.Response:
        token = Path(os.environ.get(TOKEN_FILE, "")).read_text().strip()
        return web.send("GET", address, {"Authorization": token})

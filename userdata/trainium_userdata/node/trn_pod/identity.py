"""The credentials of a pod's role, from EKS Pod Identity."""

from __future__ import annotations

import os
from pathlib import Path

from trn_node import web
from trn_node.imds import Imds

ADDRESS, TOKEN_FILE = "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"
"""Variables that EKS sets in a pod: the address of the credentials, and the file with the token for the request. EKS
renews the file (AWS SDKs and Tools Reference Guide, container credential provider)."""


class PodIdentity(Imds):
    """Pod Identity in the place of the metadata service, for requests to AWS.

    Raises:
        LookupError: The pod has no identity.
    """

    source = "EKS Pod Identity"

    def __init__(self, *, retries: int | None = None) -> None:
        super().__init__(retries=retries)
        if ADDRESS not in os.environ:
            raise LookupError(
                "this pod has no credentials: its service account needs an EKS Pod Identity association, and the "
                "cluster the add-on eks-pod-identity-agent"
            )

    def document(self) -> str:
        response = web.retry(self._ask, (200,), self.retries)
        if response.status != 200:
            raise OSError(f"{self.source} returns no credentials, but status {response.status}")
        return response.body.decode(errors="replace")

    def _ask(self) -> web.Response:
        token = Path(os.environ.get(TOKEN_FILE, "")).read_text().strip()
        return web.send("GET", os.environ[ADDRESS], {"Authorization": token})

"""This node in Kubernetes: its taint and its annotations."""

from __future__ import annotations

import json
import os
import ssl
import urllib.request
from collections.abc import Mapping
from typing import Any

from trainium_wire.kubernetes import BOOT_ANNOTATION, STATE_ANNOTATION, UNVERIFIED
from trn_node import files, web

SERVICE_ACCOUNT = "var/run/secrets/kubernetes.io/serviceaccount"
CONFLICTS = 10
"""How many conflicts with other changes of the node are tolerated in a row. kubelet changes its status all the time."""


class NodeObject:
    """The Node with the name NODE_NAME. The pod's service account may get and patch nodes.

    Raises:
        OSError: A request fails, or this process does not run in a pod.
    """

    def __init__(self) -> None:
        try:
            host, port, name = (
                os.environ[key] for key in ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "NODE_NAME")
            )
        except KeyError as error:
            raise OSError(f"not in a pod of the verification: {error} is not set") from None
        self._url = f"https://{f'[{host}]' if ':' in host else host}:{port}/api/v1/nodes/{name}"
        context = ssl.create_default_context(cafile=str(files.path(f"{SERVICE_ACCOUNT}/ca.crt")))
        handlers = urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        self._opener = urllib.request.build_opener(*handlers)

    def is_verified(self, boot: str) -> bool:
        """Whether the node was verified in this boot, and has no taint since."""
        node = self._read()
        return bool(boot) and _annotations(node).get(BOOT_ANNOTATION) == boot and not _is_tainted(node)

    def state(self) -> str:
        """The state of its verification; empty before the first one."""
        return _annotations(self._read()).get(STATE_ANNOTATION, "")

    def taint(self, state: str) -> None:
        """Set the taint, unless it is set, and the state."""
        self._change(tainted=True, annotations={BOOT_ANNOTATION: None, STATE_ANNOTATION: state})

    def remove_taint(self, boot: str) -> None:
        """Remove the taint of a node that was verified in this boot."""
        self._change(tainted=False, annotations={BOOT_ANNOTATION: boot, STATE_ANNOTATION: "verified"})

    def _change(self, *, tainted: bool, annotations: Mapping[str, str | None]) -> None:
        for _ in range(CONFLICTS):
            node = self._read()
            # The list of taints is replaced as a whole, so a change of another program in the meantime is a conflict.
            others = [taint for taint in _taints(node) if taint.get("key") != UNVERIFIED]
            own = [{"key": UNVERIFIED, "value": "true", "effect": "NoSchedule"}] if tainted else []
            patch = {
                "metadata": {"resourceVersion": node["metadata"]["resourceVersion"], "annotations": annotations},
                "spec": {"taints": others + own},
            }
            response = self._send("PATCH", (200, 409), json.dumps(patch).encode())
            if response.status == 200:
                return
        raise OSError(f"Kubernetes refuses PATCH {self._url}: {CONFLICTS} conflicts in a row")

    def _read(self) -> dict[str, Any]:
        return json.loads(self._send("GET", (200,)).body)

    def _send(self, method: str, accepted: tuple[int, ...], body: bytes | None = None) -> web.Response:
        # The token is rotated.
        token = files.read(f"{SERVICE_ACCOUNT}/token").strip()
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/merge-patch+json"
        # A patch with a resource version can be repeated: it applies once.
        response = web.retry(
            lambda: web.send(method, self._url, headers, body, opened=self._opener), (*accepted, 401, 403, 404, 422)
        )
        if response.status not in accepted:
            raise OSError(f"Kubernetes refuses {method} {self._url}: {response.status} {_message(response.body)}")
        return response


def _annotations(node: Mapping[str, Any]) -> Mapping[str, str]:
    return node["metadata"].get("annotations") or {}


def _is_tainted(node: Mapping[str, Any]) -> bool:
    return any(taint.get("key") == UNVERIFIED for taint in _taints(node))


def _taints(node: Mapping[str, Any]) -> list[dict[str, Any]]:
    taints: list[dict[str, Any]] | None = node["spec"].get("taints")
    return taints or []


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body)["message"])
    except (ValueError, LookupError, TypeError):
        return ""

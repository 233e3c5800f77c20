"""A stand-in for the Kubernetes API server: the requests about nodes, checked as Kubernetes checks them.

It knows two users. The kubelet of a node creates its Node, and must not change taints afterwards (NodeRestriction). The
service account of the verification may get and patch nodes. Other requests are forbidden.
"""

import json
import ssl
import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tools.lab.certificates import Certificates
from tools.lab.eks.kubernetes import problems

NODES = "/api/v1/nodes"
MERGE_PATCH = "application/merge-patch+json"
KUBELET, POD = "kubelet-token", "pod-token"
ALLOWED = {KUBELET: {"POST", "GET"}, POD: {"GET", "PATCH"}}
"""The methods of each user by its token."""


@dataclass(frozen=True)
class Change:
    """An accepted change of a node: the keys of its taints and its annotations afterwards."""

    user: str
    taints: tuple[str, ...]
    annotations: Mapping[str, str]


@dataclass
class ApiServer:
    """The server, in a `with` block.

    Attributes:
        nodes: The Node objects by name.
        changes: The accepted changes of each node, in order.
        refused: The refused requests, with the reason.
        conflicts: How many of the next patches meet another change of the node.
        down: Whether every request is answered with 503.
    """

    address: str
    certificates: Certificates
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    changes: dict[str, list[Change]] = field(default_factory=dict[str, list[Change]])
    refused: list[str] = field(default_factory=list[str])
    conflicts: int = 0
    down: bool = False

    def __enter__(self) -> Self:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificates.certificate, self.certificates.key)
        self._lock, self._version = threading.Lock(), 0
        self._server = ThreadingHTTPServer((self.address, 0), _handler(self))
        self._server.daemon_threads = True
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    def taints(self, name: str) -> list[str]:
        """The keys of a node's taints."""
        return [taint["key"] for taint in self.nodes[name]["spec"].get("taints") or []]

    def annotations(self, name: str) -> Mapping[str, str]:
        return self.nodes[name]["metadata"].get("annotations") or {}

    def respond(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, Mapping[str, Any]]:
        """The status and the body of the response."""
        with self._lock:
            status, content = (503, "down") if self.down else self._respond(method, path, headers, body)
        if isinstance(content, dict):
            return status, content
        self.refused.append(f"{method} {path}: {content}")
        return status, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": content, "code": status}

    def _respond(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, dict[str, Any] | str]:
        user = headers.get("Authorization", "").removeprefix("Bearer ")
        collection, _, name = path.rpartition("/") if path != NODES else (path, "", "")
        if user not in ALLOWED:
            return 401, "Unauthorized"
        if method not in ALLOWED[user] or collection != NODES or bool(name) == (method == "POST"):
            return 403, f"{user} cannot {method} {path}"
        if method == "POST":
            return self._create(json.loads(body))
        if name not in self.nodes:
            return 404, f'nodes "{name}" not found'
        return (200, self.nodes[name]) if method == "GET" else self._patch(user, name, headers, json.loads(body))

    def _create(self, node: dict[str, Any]) -> tuple[int, dict[str, Any] | str]:
        name = node["metadata"]["name"]
        if name in self.nodes:
            return 409, f'nodes "{name}" already exists'
        if found := problems(node):
            return 422, "; ".join(found)
        self._store(name, node | {"metadata": node["metadata"] | {"uid": str(uuid.uuid4())}}, KUBELET)
        return 201, self.nodes[name]

    def _patch(
        self, user: str, name: str, headers: Mapping[str, str], patch: Mapping[str, Any]
    ) -> tuple[int, dict[str, Any] | str]:
        if headers.get("Content-Type") != MERGE_PATCH:
            return 415, f"{headers.get('Content-Type')} is not {MERGE_PATCH}"
        if self.conflicts:
            self.conflicts -= 1
            self._store(name, self.nodes[name], KUBELET)
        current = self.nodes[name]
        if (
            patch["metadata"].get("resourceVersion", current["metadata"]["resourceVersion"])
            != (current["metadata"]["resourceVersion"])
        ):
            return 409, "the object has been modified"
        changed = merged(current, patch)
        if found := problems(changed):
            return 422, "; ".join(found)
        self._store(name, changed, user)
        return 200, self.nodes[name]

    def _store(self, name: str, node: Mapping[str, Any], user: str) -> None:
        self._version += 1
        self.nodes[name] = {**node, "metadata": {**node["metadata"], "resourceVersion": str(self._version)}}
        annotations = dict(self.annotations(name))
        self.changes.setdefault(name, []).append(Change(user, tuple(self.taints(name)), annotations))


def merged(target: Any, patch: Any) -> Any:
    """The result of a JSON merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def _handler(server: ApiServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing."""

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, content = server.respond(self.command, self.path, dict(self.headers.items()), body)
            text = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        setattr(Handler, f"do_{method}", Handler.answer)
    return Handler

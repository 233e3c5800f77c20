"""The instance metadata service (version 2 only) of all nodes on the switch. It identifies a node by its address."""

import json
import secrets
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tools.lab.instance import Instance, Tree
from tools.lab.network import METADATA

PORT = 80
TOKEN_PATH = "/latest/api/token"
TOKEN_HEADER = "X-aws-ec2-metadata-token"
TTL_HEADER = "X-aws-ec2-metadata-token-ttl-seconds"


@dataclass
class Subject:
    """A node's instance, and how the service treats that node."""

    instance: Instance
    delay_seconds: float = 0
    silent_until: float = 0
    """Monotonic time before which no answer is given."""
    notices: dict[str, str] = field(default_factory=dict[str, str])
    """Documents by their path below meta-data, such as spot/instance-action."""

    def document(self, path: list[str]) -> str | None:
        """The document at a path below /latest, or the listing of a folder; None if neither exists.

        Raises:
            LookupError: The path is that of the user data, which are bytes.
        """
        if path == ["user-data"]:
            raise LookupError("user data are bytes")
        place: Any = self._tree()
        for name in path:
            if not isinstance(place, dict) or name not in place:
                return None
            place = place[name]
        return _listing(place) if isinstance(place, dict) else str(place)

    def _tree(self) -> Tree:
        tree = self.instance.metadata
        for path, document in self.notices.items():
            *folders, name = path.split("/")
            place = tree["meta-data"]
            for folder in folders:
                place = place.setdefault(folder, {})
            place[name] = document
        return tree


class MetadataService:
    """The service. It answers 404 to addresses that are not in `subjects`."""

    def __init__(self) -> None:
        self.subjects: dict[str, Subject] = {}
        self.tokens: set[str] = set()
        self.refused = 0
        """Number of requests without a valid token, which were answered with 401."""

    def announce_spot_interruption(self, address: str, *, at: str) -> None:
        self.subjects[address].notices["spot/instance-action"] = json.dumps({"action": "terminate", "time": at})


@contextmanager
def metadata_service() -> Generator[MetadataService]:
    """The service, listening on its well-known address on the switch."""
    service = MetadataService()
    server = ThreadingHTTPServer((METADATA, PORT), _handler(service))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()


def _handler(service: MetadataService) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing: the tests look at nodes."""

        def do_PUT(self) -> None:
            if self._subject() is None or self.path != TOKEN_PATH:
                return self._send(404)
            if not self.headers.get(TTL_HEADER, "").isdigit():
                return self._send(400)
            token = secrets.token_urlsafe(32)
            service.tokens.add(token)
            return self._send(200, token.encode(), {TTL_HEADER: self.headers[TTL_HEADER]})

        def do_GET(self) -> None:
            subject = self._subject()
            if subject is None:
                return self._send(404)
            if self.headers.get(TOKEN_HEADER) not in service.tokens:
                service.refused += 1
                return self._send(401)
            # The first part is the version; the service has all versions.
            path = [part for part in self.path.split("?")[0].split("/") if part][1:]
            if path == ["user-data"]:
                return self._send(200, subject.instance.user_data)
            document = subject.document(path)
            return self._send(404) if document is None else self._send(200, document.encode())

        def _subject(self) -> Subject | None:
            subject = service.subjects.get(self.client_address[0])
            if subject:
                time.sleep(max(subject.delay_seconds, subject.silent_until - time.monotonic(), 0))
            return subject

        def _send(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(body)
            except OSError:
                self.close_connection = True

    return Handler


def _listing(folder: Tree) -> str:
    return "\n".join(f"{name}/" if isinstance(inside, dict) else name for name, inside in folder.items())

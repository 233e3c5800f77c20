"""The HTTP server, on loopback only. It limits time and size of requests, and the connections of unknown senders."""

import io
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from typing import Any, cast

from moto.moto_server.werkzeug_app import MotoRequestHandler
from werkzeug.serving import ThreadedWSGIServer

from trainium_local.signatures import SignedRequest

HEAD_SECONDS = 10.0
BODY_SECONDS = 120.0
SEND_SECONDS = 120.0
MAX_BODY = 512 << 20
"""Maximum size of a request body in bytes. S3 accepts 5 GiB in one request; here, objects are kept in memory."""
MAX_UNKNOWN = 64
"""Maximum number of connections of unknown senders. A further connection closes the oldest of them."""

_TOO_LARGE = f"The request body must not exceed {MAX_BODY} bytes."

INCOMING = "trainium_local.incoming"
"""Key of the WSGI environment for the Incoming of a request."""


@dataclass(frozen=True, kw_only=True)
class Incoming:
    """A request of which only the head has been read.

    Attributes:
        request: The method, the target and the headers.
        read_body: Reads the body. Call it only if the access key or the token of the request is known. It raises
            OverflowError for a body that is too large, ValueError for an invalid length, and OSError for a body that
            does not arrive in time.
    """

    request: SignedRequest
    read_body: Callable[[], bytes]


class Server(ThreadedWSGIServer):
    """Serves an application on a listening socket. Raises ValueError if the socket is not on loopback."""

    def __init__(self, listener: socket.socket, application: Any) -> None:
        host, port = listener.getsockname()[:2]
        if not ip_address(host).is_loopback:
            raise ValueError(f"the embedded AWS listens on loopback only, not on {host}")
        # connection -> the time at which it is closed: a client may send one byte at a time
        self._unknown: dict[socket.socket, float] = {}
        self._sending_bodies: dict[socket.socket, float] = {}
        self._counting = threading.Lock()
        super().__init__(host, port, application, Handler, fd=listener.fileno())

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._counting:
            self._unknown[request] = time.monotonic() + HEAD_SECONDS
            too_many = list(self._unknown)[: len(self._unknown) - MAX_UNKNOWN]
        self._disconnect(too_many)
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        now = time.monotonic()
        with self._counting:
            waited_for = [*self._unknown.items(), *self._sending_bodies.items()]
        self._disconnect([request for request, deadline in waited_for if deadline <= now])

    def shutdown_request(self, request: Any) -> None:
        self.remove_deadline(request)
        super().shutdown_request(request)

    def wait_for_body(self, request: socket.socket) -> None:
        """Extend the deadline for the body: the sender is known."""
        with self._counting:
            self._unknown.pop(request, None)
            self._sending_bodies[request] = time.monotonic() + BODY_SECONDS

    def remove_deadline(self, request: socket.socket) -> None:
        """Remove the deadline: the request is complete."""
        with self._counting:
            self._unknown.pop(request, None)
            self._sending_bodies.pop(request, None)

    def _disconnect(self, requests: list[socket.socket]) -> None:
        for request in requests:
            self.remove_deadline(request)
            with suppress(OSError):  # the connection may have ended just now
                request.shutdown(socket.SHUT_RDWR)


class Handler(MotoRequestHandler):
    def make_environ(self) -> dict[str, Any]:
        environ = super().make_environ()
        headers: dict[str, list[str]] = {}
        for name, value in self.headers.items():
            headers.setdefault(name.lower(), []).append(value)
        request = SignedRequest(
            method=self.command, target=self.path, headers={name: ",".join(values) for name, values in headers.items()}
        )
        environ[INCOMING] = Incoming(request=request, read_body=partial(self._read_body, environ))
        return environ

    def _read_body(self, environ: dict[str, Any]) -> bytes:
        server = cast("Server", self.server)
        server.wait_for_body(self.connection)
        in_chunks = bool(environ.pop("HTTP_TRANSFER_ENCODING", None))
        length = MAX_BODY + 1 if in_chunks else int(environ.get("CONTENT_LENGTH") or 0)
        if length < 0:
            raise ValueError(f"Content-Length must not be negative, got {length}.")
        if length > MAX_BODY and not in_chunks:
            raise OverflowError(_TOO_LARGE)
        body = io.BufferedReader(environ["wsgi.input"]).read(length) if in_chunks else self.rfile.read(length)
        if len(body) > MAX_BODY:
            raise OverflowError(_TOO_LARGE)
        if len(body) < length and not in_chunks:
            raise ConnectionAbortedError
        server.remove_deadline(self.connection)
        self.connection.settimeout(SEND_SECONDS)
        environ |= {"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))}
        return body

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Log errors of the server only: a deployment makes thousands of requests."""
        if str(code).startswith("5"):
            print(f"{self.command} {self.path.partition('?')[0]} {code} {size}", file=sys.stderr, flush=True)

    def log_error(self, format: str, *args: Any) -> None:
        """Log nothing: a client's error is in its response."""

"""The HTTP server: on loopback only, with a bound for the time, the size and the number of what clients send."""

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

from trainium_local.signatures import Request

HEAD_SECONDS = 10.0
BODY_SECONDS = 120.0
SEND_SECONDS = 120.0
MOST_BODY = 512 << 20
"""Bytes of one request. S3 takes 5 GiB at once; the objects here are in memory."""
MOST_UNKNOWN = 64
"""Connections of clients that have not yet said who they are. When one more comes, the oldest is closed."""
MOST_KNOWN = 512
"""Requests at once of clients that have."""

_TOO_LARGE = f"a request's body has at most {MOST_BODY} bytes here"

INCOMING = "trainium_local.incoming"
"""Where a WSGI environment holds the Incoming of its request."""


@dataclass(frozen=True, kw_only=True)
class Incoming:
    """A request of which only the head has been read. read_body: to be called once it is known who sends it.

    It raises OverflowError when the body or the number of requests is too large, ValueError for a length that is none,
    and OSError when the body does not come in time.
    """

    request: Request
    read_body: Callable[[], bytes]


class Server(ThreadedWSGIServer):
    """Serves an application on a socket that listens already. Raises ValueError unless that is on loopback."""

    def __init__(self, listener: socket.socket, application: Any) -> None:
        host, port = listener.getsockname()[:2]
        if not ip_address(host).is_loopback:
            raise ValueError(f"the embedded AWS listens on loopback only, not on {host}")
        self._unknown: dict[socket.socket, None] = {}
        self._known: set[socket.socket] = set()
        self._counting = threading.Lock()
        super().__init__(host, port, application, Handler, fd=listener.fileno())

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._counting:
            self._unknown[request] = None
            too_many = [next(iter(self._unknown))] if len(self._unknown) > MOST_UNKNOWN else []
            for oldest in too_many:
                del self._unknown[oldest]
        for oldest in too_many:
            with suppress(OSError):  # it may have ended just now
                oldest.shutdown(socket.SHUT_RDWR)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._counting:
            self._unknown.pop(request, None)
            self._known.discard(request)
        super().shutdown_request(request)

    def let_in(self, request: socket.socket) -> None:
        """Count a connection among the known ones. Raises OverflowError."""
        with self._counting:
            self._unknown.pop(request, None)
            if len(self._known) >= MOST_KNOWN:
                raise OverflowError(f"{MOST_KNOWN} requests are being answered")
            self._known.add(request)


class Handler(MotoRequestHandler):
    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self._reader = _UntilDeadline(self.connection)
        self.rfile = io.BufferedReader(self._reader)

    def make_environ(self) -> dict[str, Any]:
        environ = super().make_environ()
        headers: dict[str, list[str]] = {}
        for name, value in self.headers.items():
            headers.setdefault(name.lower(), []).append(value)
        request = Request(
            method=self.command,
            target=self.path,
            headers={name: ",".join(values) for name, values in headers.items()},
        )
        environ[INCOMING] = Incoming(request=request, read_body=partial(self._read_body, environ))
        return environ

    def _read_body(self, environ: dict[str, Any]) -> bytes:
        cast("Server", self.server).let_in(self.connection)
        self._reader.deadline = time.monotonic() + BODY_SECONDS
        in_chunks = bool(environ.pop("HTTP_TRANSFER_ENCODING", None))
        length = MOST_BODY + 1 if in_chunks else int(environ.get("CONTENT_LENGTH") or 0)
        if length < 0:
            raise ValueError(f"Content-Length: {length}")
        if length > MOST_BODY and not in_chunks:
            raise OverflowError(_TOO_LARGE)
        body = io.BufferedReader(environ["wsgi.input"]).read(length) if in_chunks else self.rfile.read(length)
        if len(body) > MOST_BODY:
            raise OverflowError(_TOO_LARGE)
        if len(body) < length and not in_chunks:
            raise ConnectionAbortedError
        self.connection.settimeout(SEND_SECONDS)
        environ |= {"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))}
        return body

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Failures of the server only: a deployment makes thousands of requests."""
        if str(code).startswith("5"):
            print(f"{self.command} {self.path.partition('?')[0]} {code} {size}", file=sys.stderr, flush=True)

    def log_error(self, format: str, *args: Any) -> None:
        """Nothing: what a client does wrong is in its answer."""


class _UntilDeadline(io.RawIOBase):
    """What comes from a socket until the deadline; after it, TimeoutError, however little came at a time."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__()
        self.deadline = time.monotonic() + HEAD_SECONDS
        self._connection = connection

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)

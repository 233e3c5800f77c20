"""A proxy for an embedded AWS that kills a process after a given change, and denies operations."""

import os
import re
import signal
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

from trainium_local.environment import Connection
from trainium_local.signatures import SignedRequest, request_signature, sign

_READ_PREFIXES = ("describe", "get", "list", "head")
_BATCH_PATH = re.compile("/v1/([a-z]+)")
"""The path of a request to AWS Batch, which ends with the operation in lower case."""


@dataclass
class KillingProxy:
    """Forwards requests, and kills a process after a given number of changes.

    Attributes:
        connection: The embedded AWS.
        url: The address of the proxy.
        victim: The ID of the process that gets SIGKILL.
        fatal: The number of the change after which the process is killed; 0: no process is killed.
        denied: Operations that are answered with IAM's access denied error.
        changes: The operations of all requests so far that change something.
    """

    connection: Connection
    url: str = ""
    victim: int = 0
    fatal: int = 0
    denied: frozenset[str] = frozenset()
    changes: list[str] = field(default_factory=list[str])
    lock: Lock = field(default_factory=Lock)

    def record(self, operation: str) -> bool:
        """Add an operation to `changes` if it changes something. Returns whether the process must be killed."""
        with self.lock:
            if operation.lower().startswith(_READ_PREFIXES):
                return False
            self.changes.append(operation)
            return len(self.changes) == self.fatal

    def set_victim(self, pid: int) -> None:
        self.victim = pid

    def arm(self, *, fatal: int, denied: frozenset[str] = frozenset()) -> None:
        self.fatal, self.denied, self.changes = fatal, denied, []


@contextmanager
def killing_proxy(connection: Connection) -> Generator[KillingProxy]:
    proxy = KillingProxy(connection)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(proxy))
    proxy.url = f"http://127.0.0.1:{server.server_port}"
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()


def operation(method: str, path: str, target: str | None, body: bytes) -> str:
    """The operation of a request; for REST interfaces other than AWS Batch's, such as S3's, the HTTP method."""
    if target is not None:
        return target.rpartition(".")[2]
    if batch := _BATCH_PATH.fullmatch(path):
        return batch[1]
    actions = parse_qs(body.decode(errors="replace")).get("Action") if method == "POST" else None
    return actions[0] if actions else method.capitalize()


def _denial(target: str | None) -> bytes:
    if target is not None:
        return b'{"__type": "AccessDeniedException", "message": "no"}'
    error = "<Error><Code>{}</Code><Message>no</Message></Error>"
    # The code and the format of EC2, because the tests deny no other service with the Query protocol.
    return f"<Response><Errors>{error.format('UnauthorizedOperation')}</Errors></Response>".encode()


def _handler(proxy: KillingProxy) -> type[BaseHTTPRequestHandler]:
    host = urlsplit(proxy.connection.endpoint).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Transfer-Encoding") == "chunked":
                raise NotImplementedError("a request with chunked transfer encoding")
            target = self.headers.get("X-Amz-Target")
            called = operation(self.command, self.path, target, body)
            if called in proxy.denied:
                self._answer(403 if target is None else 400, {}, _denial(target))
                return
            fatal = proxy.record(called)
            status, headers, content = self._forward(body)
            if fatal:
                os.kill(proxy.victim, signal.SIGKILL)
                self.close_connection = True
            else:
                self._answer(status, headers, content)

        def _answer(self, status: int, headers: dict[str, str], content: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                if name.lower() not in ("transfer-encoding", "content-length", "connection", "server", "date"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def _forward(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
            connection = HTTPConnection(host, timeout=120)
            headers = {name.lower(): value for name, value in self.headers.items() if name.lower() != "expect"}
            request = SignedRequest(method=self.command, target=self.path, headers=headers)
            if signature := request_signature(request):  # The signature includes the host, which is the proxy's.
                request = replace(request, headers=headers | {"host": host})
                where = {"region": signature.region, "service": signature.service}
                headers = sign(proxy.connection.credentials, request, body, **where)
            connection.request(self.command, self.path, body, headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()

        def log_message(self, format: str, *args: Any) -> None:
            pass

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = pass_on  # noqa: N815

    return Handler

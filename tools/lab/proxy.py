"""A TLS proxy for AWS's host names: requests of nodes go to the embedded AWS, or are answered from a folder of files.

It records every request. For a node, it can refuse S3 requests, simulate a wrong clock, or make a host unavailable.
"""

import http.client
import re
import ssl
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tools.lab.certificates import Certificates
from tools.lab.network import SERVICES
from trainium_local.environment import Connection
from trainium_local.signatures import SignedRequest as NodeRequest
from trainium_local.signatures import request_signature, sign

PORT = 443
_HOP_BY_HOP = ("connection", "keep-alive", "transfer-encoding", "te", "upgrade", "expect", "date")


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request of a node, as it was answered.

    Attributes:
        time: Seconds since 1970.
    """

    client: str
    method: str
    host: str
    path: str
    status: int
    time: float


@dataclass(frozen=True, kw_only=True)
class Fault:
    """An error of the S3 API, which the proxy returns for some of a node's requests.

    Attributes:
        methods: HTTP methods of these requests.
        path: A regular expression for the paths of these requests.
    """

    status: int
    code: str
    message: str
    methods: frozenset[str] = frozenset({"GET", "PUT"})
    path: str = ""

    def matches(self, method: str, host: str, path: str) -> bool:
        return method in self.methods and ".s3." in f".{host}" and bool(re.search(self.path, path))

    @property
    def document(self) -> bytes:
        return f"<Error><Code>{self.code}</Code><Message>{self.message}</Message></Error>".encode()


ACCESS_DENIED = Fault(status=403, code="AccessDenied", message="Access Denied")
WRITING_DENIED = replace(ACCESS_DENIED, methods=frozenset({"PUT"}))
CLOCK_SKEWED = Fault(
    status=403,
    code="RequestTimeTooSkewed",
    message="The difference between the request time and the current time is too large.",
)
MAX_SKEW = timedelta(minutes=15)
"""The limit of S3 itself."""


@dataclass
class Proxy:
    """The settings and the recorded requests of the proxy.

    Attributes:
        connection: Connection to the embedded AWS.
        files: A folder for each host that serves files.
    """

    connection: Connection
    files: Path
    requests: list[Request] = field(default_factory=list[Request])
    s3_faults: dict[str, Fault] = field(default_factory=dict[str, Fault])
    """Faults by address of the node."""
    clocks_behind: dict[str, timedelta] = field(default_factory=dict[str, timedelta])
    """How far S3's clock is ahead of a node's, by address of the node. Nodes themselves share one kernel clock."""
    hosts_down: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """Hosts that answer 503, by address of the node."""
    other_files: dict[str, Path] = field(default_factory=dict[str, Path])
    """A folder that replaces `files`, by address of the node."""

    def of(self, address: str) -> Sequence[Request]:
        """The requests of one node, in their order."""
        return [request for request in self.requests if request.client == address]

    def end_faults(self, address: str) -> None:
        """Treat a later node with the address of a removed one as any other."""
        for faults in (self.s3_faults, self.clocks_behind, self.hosts_down, self.other_files):
            faults.pop(address, None)


@contextmanager
def proxy(connection: Connection, *, files: Path, certificates: Certificates) -> Generator[Proxy]:
    """Run the proxy at the address of the services."""
    state = Proxy(connection=connection, files=files)
    server = _TlsServer((SERVICES, PORT), _handler(state), certificates)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()


class _TlsServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], files: Certificates) -> None:
        super().__init__(address, handler)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(files.certificate, files.key)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Do the TLS handshake in the thread of the connection, so that a slow one delays no other connection."""
        with self._context.wrap_socket(request, server_side=True) as secure:
            super().finish_request(secure, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: a node may close the connection or lose its power."""


def _handler(state: Proxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing: `respond` records requests."""

        def respond(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            host, client = self.headers.get("Host", "").split(":")[0], self.client_address[0]
            status, headers, content = self._response(host, client, body)
            state.requests.append(
                Request(
                    client=client,
                    method=self.command,
                    host=host,
                    path=self.path,
                    status=status,
                    time=time.time(),
                )
            )
            self.send_response_only(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def _response(self, host: str, client: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
            if host in state.hosts_down.get(client, ()):
                return 503, {"Content-Length": "0"}, b""
            folder = state.other_files.get(client, state.files) / host
            if folder.is_dir():
                file = folder / urlsplit(self.path).path.lstrip("/")
                content = file.read_bytes() if file.is_file() else b""
                return 200 if file.is_file() else 404, {"Content-Length": str(len(content))}, content
            ahead = state.clocks_behind.get(client, timedelta())
            fault = state.s3_faults.get(client) or (CLOCK_SKEWED if self._is_skewed(ahead) else None)
            if fault and fault.matches(self.command, host, self.path):
                status, headers, content = fault.status, {"Content-Type": "application/xml"}, fault.document
                headers["Content-Length"] = str(len(content))
            else:
                status, headers, content = self._forward(host, body)
            return status, headers | {"Date": format_datetime(datetime.now(UTC) + ahead, usegmt=True)}, content

        def _is_skewed(self, ahead: timedelta) -> bool:
            if not ahead or not (moment := self.headers.get("x-amz-date")):
                return False
            signed = datetime.strptime(moment, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
            return abs(datetime.now(UTC) + ahead - signed) > MAX_SKEW

        def _forward(self, host: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
            target = urlsplit(state.connection.endpoint)
            connection = http.client.HTTPConnection(target.hostname or "", target.port, timeout=60)
            passed = {name.lower(): value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
            bucket = host.partition(".s3.")[0] if ".s3." in host else ""
            path = f"/{bucket}{self.path}" if bucket else self.path
            request = NodeRequest(method=self.command, target=path, headers=passed | {"host": target.netloc})
            # The embedded AWS knows neither the node's credentials nor AWS's host names.
            if signature := request_signature(request):
                where = {"region": signature.region, "service": signature.service}
                passed = sign(state.connection.credentials, request, body, **where)
            try:
                connection.request(self.command, path, body=body, headers=passed)
                response = connection.getresponse()
                content = response.read()
                response_headers = {
                    name: value for name, value in response.headers.items() if name.lower() not in _HOP_BY_HOP
                }
                if self.command != "HEAD":
                    response_headers["Content-Length"] = str(len(content))
                return response.status, response_headers, content
            finally:
                connection.close()

    for method in ("GET", "PUT", "POST", "HEAD", "DELETE"):
        setattr(Handler, f"do_{method}", Handler.respond)
    return Handler

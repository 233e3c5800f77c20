"""A proxy between a node and S3 that can refuse, cut, stall or delay requests."""

import http.client
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

Fault = Literal["refused", "cut", "still", ""]
"""refused: status 403. cut: the connection ends before or within the response. still: no more data follow."""

OF_THE_CONNECTION = ("connection", "content-length", "transfer-encoding")
REFUSED = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    """A refused connection is retried after a second."""


class FaultyS3:
    """The proxy.

    Args:
        endpoint: Endpoint of S3.
        region: Region of S3.
        keys: Credentials that sign the forwarded requests.

    Attributes:
        fault: Called for each request with its method and the number of earlier requests of that method.
        seen: Number of requests by method.
    """

    def __init__(self, endpoint: str, region: str, keys: Sequence[str]) -> None:
        self.fault: Callable[[str, int], Fault] = lambda _method, _number: ""
        self.seen: Counter[str] = Counter()
        self._counting = threading.Lock()
        self._endpoint, self._region, self._keys = endpoint, region, Credentials(*keys)
        self._over = threading.Event()
        self._server = _Server(("127.0.0.1", 0), self._handler())

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()

    def heal(self) -> None:
        self.fault = lambda _method, _number: ""

    def next_fault(self, method: str) -> Fault:
        with self._counting:
            self.seen[method] += 1
            return self.fault(method, self.seen[method] - 1)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        faulty = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                fault = faulty.next_fault("GET")
                if fault == "refused":
                    self._answer(403, {}, REFUSED, "")
                else:
                    self._answer(*self._from_s3(b""), fault)

            def do_PUT(self) -> None:
                fault = faulty.next_fault("PUT")
                length = int(self.headers["Content-Length"])
                if fault == "still":
                    self.rfile.read(length // 2)
                    self._end(fault)
                    return
                # Also before a cut: unread data would end the connection at random with `broken pipe` or `reset`.
                body = self.rfile.read(length)
                if fault == "cut":
                    self._end(fault)
                    return
                if fault == "refused":
                    self._answer(403, {}, REFUSED, "")
                else:
                    self._answer(*self._from_s3(body), "")

            def _from_s3(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
                names = ("content-type", "if-match", "if-none-match")
                forwarded = {
                    name: value
                    for name, value in self.headers.items()
                    if name.lower() in names or name.lower().startswith("x-amz-meta-")
                }
                request = AWSRequest(self.command, f"{faulty._endpoint}{self.path}", forwarded, body)
                # The node's signature is for another address.
                signer: Any = S3SigV4Auth(faulty._keys, "s3", faulty._region)
                signer.add_auth(request)
                prepared = request.prepare()
                connection = http.client.HTTPConnection(urlsplit(faulty._endpoint).netloc)
                connection.request(self.command, self.path, body, dict(prepared.headers))
                answer = connection.getresponse()
                headers = {name: value for name, value in answer.getheaders() if name.lower() not in OF_THE_CONNECTION}
                return answer.status, headers, answer.read()

            def _answer(self, status: int, headers: dict[str, str], body: bytes, fault: Fault) -> None:
                self.send_response_only(status)
                for name, value in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body[: len(body) // 2] if fault else body)
                if fault:
                    self._end(fault)

            def _end(self, fault: Fault) -> None:
                if fault == "still":
                    faulty._over.wait()
                self.close_connection = True

            def log_message(self, format: str, *args: object) -> None:
                del format, args

        return Handler

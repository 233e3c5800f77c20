"""A stand-in of S3 for measurements: it lists and sends files, with next to no work of its own."""

import multiprocessing
import os
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from trainium_core.compile_cache.place import DIGEST

_BLOCK = 256 * 1024


@contextmanager
def object_server(folder: Path, rate: float = 0) -> Generator[str]:
    """Its address while it runs. folder: a bucket in each folder; an object NAME has its digest in NAME.sha256.

    rate: bytes in a second over all connections; 0: as fast as they go.
    """
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=_serve, args=(folder, rate, theirs), daemon=True)
    process.start()
    yield f"http://127.0.0.1:{ours.recv()}"
    process.terminate()
    process.join()


def _serve(folder: Path, rate: float, port_pipe: Any) -> None:
    line = _Line(rate) if rate else None

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = parse_qs(parts.query)
            path = folder / unquote(parts.path).strip("/")
            if "list-type" in query:
                self._send_text(_listing(path, query["prefix"][0]))
            else:
                self._send_file(path)

        def _send_text(self, text: str) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def _send_file(self, path: Path) -> None:
            digest = path.with_name(f"{path.name}.sha256")
            size = path.stat().st_size
            self.send_response(200)
            self.send_header("Content-Length", str(size))
            self.send_header("ETag", '"etag"')
            if digest.exists():
                self.send_header(f"x-amz-meta-{DIGEST}", digest.read_text())
            self.end_headers()
            self.wfile.flush()
            with path.open("rb") as content:
                sent = 0
                while sent < size:
                    if line:
                        line.wait_for(_BLOCK)
                    sent += os.sendfile(self.connection.fileno(), content.fileno(), sent, _BLOCK)

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        port_pipe.send(server.server_address[1])
        server.serve_forever()


class _Line:
    """Lets so many bytes pass in a second, whoever sends them."""

    def __init__(self, rate: float) -> None:
        self._rate, self._lock, self._free_at = rate, threading.Lock(), 0.0

    def wait_for(self, count: int) -> None:
        with self._lock:
            now = time.monotonic()
            self._free_at = max(self._free_at, now) + count / self._rate
            pause = self._free_at - now
        time.sleep(pause)


def _listing(bucket: Path, prefix: str) -> str:
    files = sorted(file for file in (bucket / prefix).rglob("*") if file.is_file() and file.suffix != ".sha256")
    items = "".join(
        f"<Contents><Key>{file.relative_to(bucket)}</Key><Size>{file.stat().st_size}</Size><ETag>etag</ETag></Contents>"
        for file in files
    )
    return f"<ListBucketResult>{items}</ListBucketResult>"

"""Downloads from a server that is not S3 and closes each connection before the end of the object."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import boto3
import pytest
from botocore.config import Config

from trainium_core.jobs.aws_transfers import download_object
from trainium_runtime.errors import UnavailableError


class BreakingOff(BaseHTTPRequestHandler):
    def _send_headers(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "10")
        self.send_header("ETag", '"1"')
        self.end_headers()

    def do_HEAD(self) -> None:
        self._send_headers()

    def do_GET(self) -> None:
        self._send_headers()
        self.wfile.write(b"abc")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), BreakingOff) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_object_that_breaks_off_is_unavailable(url: str, tmp_path: Path) -> None:
    keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}
    path_style = Config(s3={"addressing_style": "path"})
    s3 = boto3.client("s3", region_name="us-west-2", endpoint_url=url, config=path_style, **keys)
    with pytest.raises(UnavailableError, match=r"s3://bucket/model\.pt could not be read to its end: .*"):
        download_object(s3, "bucket", "model.pt", str(tmp_path / "model.pt"))

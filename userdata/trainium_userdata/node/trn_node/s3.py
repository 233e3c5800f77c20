"""Objects in S3, with the credentials of the instance's role (Signature Version 4)."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from urllib.parse import quote

from . import files, web
from .imds import Imds
from .signing import region, signed_headers

SKEWED = "RequestTimeTooSkewed"
TEMPORARY = (408, 429)
"""Status codes below 500 after which the same request may succeed."""


class S3Error(OSError):
    """S3 did not serve a request, with this HTTP status and S3 error code."""

    def __init__(self, what: str, response: web.Response) -> None:
        found = re.search(rb"<Code>([^<]*)</Code>(?:\s*<Message>([^<]*))?", response.body)
        self.status = response.status
        self.code = found[1].decode(errors="replace") if found else ""
        message = (found[2] or b"").decode(errors="replace") if found else ""
        self.is_final = 400 <= self.status < 500 and self.status not in TEMPORARY
        verb = "refuses" if self.is_final else "is unavailable for"
        super().__init__(f"S3 {verb} {what}: {self.status} {self.code} {message}".strip())


class S3:
    """`clock_offset`: seconds by which S3's clock was ahead at the last response; None before the first."""

    def __init__(self, imds: Imds | None = None, *, retries: int | None = None) -> None:
        self.imds = imds or Imds(retries=retries)
        self._retries = self.imds.retries if retries is None else retries
        self._correction = 0.0
        self.clock_offset: float | None = None
        self.requests = 0

    def put(self, url: str, body: bytes, content_type: str = "application/json") -> None:
        """Store an object at an s3:// URL. Raises OSError; S3Error if S3 refuses the request."""
        self._send("PUT", url, {"content-type": content_type}, body, (200,))

    def get(self, url: str, etag: str | None = None) -> tuple[bytes, str] | None:
        """An object and its ETag; None if it does not exist or still has this ETag. Raises like put."""
        condition = {"if-none-match": etag} if etag else {}
        response = self._send("GET", url, condition, b"", (200, 304, 404))
        return (response.body, response.headers.get("ETag", "")) if response.status == 200 else None

    def _send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | web.Body,
        accepted: tuple[int, ...],
        *,
        digest: str = "",
        query: str = "",
        into: web.Sink | None = None,
    ) -> web.Response:
        """A body that is a file needs its SHA-256 as `digest`. The query must be sorted and encoded for signatures."""
        known = hashlib.sha256(body).hexdigest() if isinstance(body, bytes) else digest
        self.requests += 1

        def send_signed() -> web.Response:
            address = _address(url) + (f"?{query}" if query else "")
            now = time.time()
            signed = signed_headers("s3", method, address, headers, known, self.imds, now + self._correction)
            if not isinstance(body, bytes):
                body.seek(0)
            response = web.send(method, address, signed, body if method in ("PUT", "POST") else None, into)
            self.clock_offset = _offset(response, now)
            return response

        def attempt() -> web.Response:
            response = send_signed()
            if SKEWED.encode() in response.body and response.status == 403 and self.clock_offset is not None:
                # A node with a wrong clock must be able to report it.
                self._correction = self.clock_offset
                response = send_signed()
            return response

        response = web.retry(attempt, accepted, self._retries)
        if response.status not in accepted:
            raise S3Error(f"{method} {url}", response)
        return response


def put(url: str, body: bytes, content_type: str = "application/json") -> None:
    S3().put(url, body, content_type)


def get(url: str, etag: str | None = None) -> tuple[bytes, str] | None:
    return S3().get(url, etag)


def clock_offset() -> float | None:
    """Seconds by which S3's clock is ahead; None without a date in its response. Raises OSError."""
    now = time.time()
    return _offset(web.send("HEAD", _address(files.location("TRN_REPORT_URL")), {}), now)


def _offset(response: web.Response, now: float) -> float | None:
    with contextlib.suppress(TypeError, ValueError):
        return parsedate_to_datetime(response.headers["Date"]).timestamp() - now
    return None


def _address(url: str) -> str:
    """The HTTP URL of an s3:// URL, in path style for a custom endpoint (AWS_ENDPOINT_URL_S3)."""
    # Not with urlsplit: a key may contain #, ?, tabs and newlines.
    bucket, _, key = url[len("s3://") :].partition("/")
    path = quote(f"/{key}", safe="/-_.~")
    custom = os.environ.get("AWS_ENDPOINT_URL_S3")
    if custom or "." in bucket:
        # S3's certificate does not cover bucket names with dots.
        endpoint = custom or f"https://s3.{region()}.amazonaws.com"
        return f"{endpoint.rstrip('/')}/{bucket}{path}"
    return f"https://{bucket}.s3.{region()}.amazonaws.com{path}"

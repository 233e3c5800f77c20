"""HTTP requests with a bounded number of retries."""

from __future__ import annotations

import functools
import os
import shutil
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from email.message import Message
from typing import Any, BinaryIO, NamedTuple, Protocol

TIMEOUT_SECONDS = 10
RETRIES = 6
PAUSE = 1.0
"""Doubled with each retry: six take about a minute, enough for the network to start and a new role to become
effective."""


class Response(NamedTuple):
    status: int
    headers: Message[str, str]
    body: bytes


class Body(Protocol):
    """A request body in a file, read from its start at each attempt."""

    def read(self, size: int = -1, /) -> bytes: ...

    def seek(self, offset: int, /) -> int: ...


class Source(Protocol):
    """The body of a response. It may return fewer bytes than requested, and none at its end."""

    def read(self, size: int = -1, /) -> bytes: ...

    def readinto(self, block: memoryview, /) -> int | None: ...


class Sink(Protocol):
    """Reads the body of a successful response."""

    def take(self, source: Source) -> int:
        """Read all of it, and return the number of bytes. Starts again at each attempt. Raises OSError."""
        ...


class FileSink:
    """Replaces the content of a file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def take(self, source: Source) -> int:
        self._file.seek(0)
        self._file.truncate()
        shutil.copyfileobj(source, self._file)
        return self._file.tell()


_lock = threading.Lock()


def opener(scheme: str) -> urllib.request.OpenerDirector:
    """The opener of a scheme, made once for all threads: reading the certificates takes a tenth of a second."""
    with _lock:
        return cached_opener(scheme)


@functools.cache
def cached_opener(scheme: str) -> urllib.request.OpenerDirector:
    # The metadata service and S3's gateway endpoint are reached without a proxy.
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
    if scheme == "https":
        handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context()))
    return urllib.request.build_opener(*handlers)


def send(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes | Body | None = None,
    into: Sink | None = None,
    opened: urllib.request.OpenerDirector | None = None,
) -> Response:
    """One request. Raises OSError without a complete response.

    Args:
        body: Bytes, or a reader whose size is in the headers.
        into: Reads the body of a successful response.
        opened: The opener, for other certificates than those of the system. Default: that of the scheme.
    """
    # urllib accepts any readable object; its stub requires all methods of a file.
    data: Any = body
    request = urllib.request.Request(url, data, dict(headers), method=method)
    try:
        try:
            response: Any = (opened or opener(request.type)).open(request, timeout=TIMEOUT_SECONDS)
        except urllib.error.HTTPError as error:
            into, response = None, error
        with response:
            if into is None:
                return Response(response.status, response.headers, response.read())
            if into.take(response) < int(response.headers.get("Content-Length", 0)):
                raise OSError("the response is incomplete")
            return Response(response.status, response.headers, b"")
    except urllib.error.URLError as error:
        raise OSError(f"{url.split('?')[0]}: {error.reason}") from None
    except ValueError as error:
        raise OSError(f"{url}: {error}") from None
    except Exception as error:
        # Errors of http.client are not OSErrors.
        raise OSError(f"{url.split('?')[0]}: {error or type(error).__name__}") from None


def retry(attempt: Callable[[], Response], accepted: tuple[int, ...], retries: int | None = None) -> Response:
    """The first response with an accepted status, or the last response. Raises OSError if the last attempt does.

    `retries` defaults to TRN_HTTP_RETRIES, or RETRIES.
    """
    left = int(os.environ.get("TRN_HTTP_RETRIES") or RETRIES) if retries is None else retries
    pause = float(os.environ.get("TRN_HTTP_PAUSE") or PAUSE)
    while True:
        try:
            response = attempt()
            if response.status in accepted or not left:
                return response
        except OSError:
            if not left:
                raise
        left -= 1
        time.sleep(pause)
        pause *= 2

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

SECONDS = 10
RETRIES = 6
PAUSE = 1.0
"""Doubled from retry to retry: with six about a minute, in which a network comes up and a new role becomes known."""


class Response(NamedTuple):
    status: int
    headers: Message[str, str]
    body: bytes


class Body(Protocol):
    """What is sent from a file. It is read from its beginning at each try."""

    def read(self, size: int = -1, /) -> bytes: ...

    def seek(self, offset: int, /) -> int: ...


class Source(Protocol):
    """What a response is read from; fewer bytes than were wanted may come, and none at its end."""

    def read(self, size: int = -1, /) -> bytes: ...

    def readinto(self, block: memoryview, /) -> int | None: ...


class Sink(Protocol):
    """What reads the body of a successful response."""

    def take(self, source: Source) -> int:
        """Read all of it, and give the number of bytes. Begins anew at each try; raises OSError."""
        ...


class FileSink:
    """Replaces what a file holds."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def take(self, source: Source) -> int:
        self._file.seek(0)
        self._file.truncate()
        shutil.copyfileobj(source, self._file)
        return self._file.tell()


_opening = threading.Lock()


def opener(scheme: str) -> urllib.request.OpenerDirector:
    """One for all requests, also of threads that begin together: to read the certificates takes a tenth of a second."""
    with _opening:
        return new_opener(scheme)


@functools.cache
def new_opener(scheme: str) -> urllib.request.OpenerDirector:
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
) -> Response:
    """One request. Raises OSError without a complete response.

    body: bytes, or what is read, with its size among the headers. into: what reads the body of a successful response.
    """
    # urllib takes whatever can be read; its stub wants all of a file's methods.
    data: Any = body
    request = urllib.request.Request(url, data, dict(headers), method=method)
    try:
        with opener(request.type).open(request, timeout=SECONDS) as response:
            if into is None:
                return Response(response.status, response.headers, response.read())
            if into.take(response) < int(response.headers.get("Content-Length", 0)):
                raise OSError("the response is incomplete")
            return Response(response.status, response.headers, b"")
    except urllib.error.HTTPError as error:
        with error:
            return Response(error.code, error.headers, error.read())
    except urllib.error.URLError as error:
        raise OSError(f"{url.split('?')[0]}: {error.reason}") from None
    except ValueError as error:
        raise OSError(f"{url}: {error}") from None
    except Exception as error:
        # http.client's errors are no OSErrors.
        raise OSError(f"{url.split('?')[0]}: {error or type(error).__name__}") from None


def retry(attempt: Callable[[], Response], accepted: tuple[int, ...], retries: int | None = None) -> Response:
    """The first response with an accepted status, or the last one of any kind. Raises OSError without any."""
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

"""HTTP requests with a bounded number of retries."""

from __future__ import annotations

import os
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from email.message import Message
from typing import BinaryIO, NamedTuple

SECONDS = 10
RETRIES = 6
PAUSE = 1.0
"""Doubled from retry to retry: with six about a minute, in which a network comes up and a new role becomes known."""


class Answer(NamedTuple):
    status: int
    headers: Message[str, str]
    body: bytes


# The metadata service and S3's gateway endpoint are reached without a proxy.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def once(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes | BinaryIO | None = None,
    into: BinaryIO | None = None,
) -> Answer:
    """One request. Raises OSError when there is no answer, or not all of it.

    body: bytes, or a file with its size among the headers. into: a file that the body of a good answer goes to.
    """
    request = urllib.request.Request(url, body, dict(headers), method=method)
    try:
        with _OPENER.open(request, timeout=SECONDS) as answer:
            if into is None:
                return Answer(answer.status, answer.headers, answer.read())
            shutil.copyfileobj(answer, into)
            if into.tell() < int(answer.headers.get("Content-Length", 0)):
                raise OSError("the answer is incomplete")
            return Answer(answer.status, answer.headers, b"")
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, error.headers, error.read())
    except urllib.error.URLError as error:
        raise OSError(f"{url.split('?')[0]}: {error.reason}") from None
    except ValueError as error:
        raise OSError(f"{url}: {error}") from None
    except Exception as error:
        # http.client's errors are no OSErrors.
        raise OSError(f"{url.split('?')[0]}: {error or type(error).__name__}") from None


def persistently(attempt: Callable[[], Answer], accepted: tuple[int, ...], retries: int | None = None) -> Answer:
    """The first answer with an accepted status, or the last one of any kind. Raises OSError when there is none."""
    left = int(os.environ.get("TRN_HTTP_RETRIES") or RETRIES) if retries is None else retries
    pause = float(os.environ.get("TRN_HTTP_PAUSE") or PAUSE)
    while True:
        try:
            answer = attempt()
            if answer.status in accepted or not left:
                return answer
        except OSError:
            if not left:
                raise
        left -= 1
        time.sleep(pause)
        pause *= 2

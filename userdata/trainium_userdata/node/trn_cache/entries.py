"""The entries of a compile cache in S3. Listing takes one request per 1,000 entries, reading or writing an entry
one."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable
from datetime import datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import BinaryIO, NamedTuple
from urllib.parse import quote

from trainium_wire.cache_place import DIGEST
from trn_node.objects import Objects
from trn_node.s3 import S3Error
from trn_node.web import Sink

LARGEST = 5 * 1024**3
"""Bytes: the maximum size of an object in one request (Amazon S3 user guide, uploading objects)."""
OF_ONE_ENTRY = ("KeyTooLongError", "EntityTooLarge")
"""Status codes for which S3 rejects only this entry."""
THERE = 412
"""PreconditionFailed. After 409, ConditionalRequestConflict, the winner is unknown, so the request is retried."""

_TAR = "application/x-tar"


class Stored(NamedTuple):
    """An object in a list. key: below the listed URL. modified: seconds since 1970, by S3's clock."""

    key: str
    size: int
    etag: str
    modified: float = 0.0


class Kept(NamedTuple):
    """The state of an object in S3. digest: stored with it. expires: when a lifecycle rule deletes it, in seconds since
    1970; None without a rule. is_versioned: whether replaced versions are kept, and billed."""

    etag: str
    digest: str
    expires: float | None
    is_versioned: bool


class UnstorableError(Exception):
    """Why this entry cannot be stored; others may still be."""


class Entries(Objects):
    """All methods raise OSError; S3Error if S3 refuses a request."""

    def read(self, url: str, sink: Sink) -> tuple[str, str] | None:
        """Read an object, and return its stored digest and ETag. None if it does not exist."""
        response = self._send("GET", url, {}, b"", (200, 404), into=sink)
        if response.status == 404:
            return None
        return response.headers.get(f"x-amz-meta-{DIGEST}", ""), response.headers.get("ETag", "")

    def add(self, url: str, file: Path, digest: str, *, replaced: str = "", check: Callable[[], object]) -> bool:
        """Store a file with its SHA-256 unless the object exists: then False. Also raises UnstorableError.

        replaced: ETag of an object to replace; returns False if the object has another ETag. check: called during the
        upload; its errors end the upload.
        """
        size = file.stat().st_size
        if size > LARGEST:
            raise UnstorableError(f"it has {size / 1024**3:.1f} GiB, and S3 takes up to 5 GiB at a time")
        headers = {
            "content-type": _TAR,
            "content-length": str(size),
            f"x-amz-meta-{DIGEST}": digest,
            **({"if-match": replaced} if replaced else {"if-none-match": "*"}),
        }
        accepted = (200, 404, THERE) if replaced else (200, THERE)
        with file.open("rb") as content:
            try:
                sent = self._send("PUT", url, headers, _Checked(content, check), accepted, digest=digest)
            except S3Error as error:
                if error.code in OF_ONE_ENTRY:
                    raise UnstorableError(str(error)) from None
                raise
        return sent.status == 200

    @property
    def now(self) -> float:
        """Seconds since 1970, by S3's clock if known."""
        return time.time() + (self.clock_offset or 0.0)

    def head(self, url: str) -> Kept | None:
        """None if the object does not exist."""
        response = self._send("HEAD", url, {}, b"", (200, 404))
        headers = response.headers
        if response.status == 404:
            return None
        digest, is_versioned = headers.get(f"x-amz-meta-{DIGEST}", ""), "x-amz-version-id" in headers
        return Kept(headers.get("ETag", ""), digest, _expires(headers), is_versioned)

    def renew(self, url: str, kept: Kept) -> bool:
        """Copy an object onto itself in S3, which resets its age. False if it no longer exists or has changed.

        S3 accepts such a copy only with new metadata (CopyObject, x-amz-metadata-directive).
        """
        headers = {
            "content-type": _TAR,
            "x-amz-copy-source": quote(url[len("s3:/") :], safe="/-_.~"),
            "x-amz-copy-source-if-match": kept.etag,
            "x-amz-metadata-directive": "REPLACE",
            f"x-amz-meta-{DIGEST}": kept.digest,
        }
        answer = self._send("PUT", url, headers, b"", (200, 404, THERE))
        # S3 may send status 200 before it has copied.
        if b"<Error>" in answer.body and answer.status == 200:
            raise S3Error(f"a copy of {url}", answer)
        return answer.status == 200

    def entries(self, url: str, most_requests: int = 100) -> list[Stored]:
        """All objects below a URL that ends with a slash, sorted by key, up to the limit of requests."""
        prefix = url[len("s3://") :].partition("/")[2]
        objects = self.list(url, below=True, most_requests=most_requests)
        return [Stored(each.key[len(prefix) :], each.size, each.etag, _seconds(each.modified)) for each in objects]


def _seconds(text: str) -> float:
    """Seconds since 1970 of a time in a list, such as 2026-11-21T12:00:00.000Z; 0 if invalid."""
    with contextlib.suppress(ValueError):
        return datetime.strptime(f"{text[:19]}+0000", "%Y-%m-%dT%H:%M:%S%z").timestamp()
    return 0.0


def _expires(headers: Message[str, str]) -> float | None:
    """Of x-amz-expiration, such as expiry-date="Fri, 23 Dec 2012 00:00:00 GMT", rule-id="1" (HeadObject)."""
    found = re.search(r'expiry-date="([^"]*)"', headers.get("x-amz-expiration", ""))
    with contextlib.suppress(TypeError, ValueError):
        return parsedate_to_datetime(found[1]).timestamp() if found else None
    return None


class _Checked:
    """A file that calls a check at each read."""

    def __init__(self, content: BinaryIO, check: Callable[[], object]) -> None:
        self._content, self._check = content, check

    def read(self, size: int = -1, /) -> bytes:
        self._check()
        return self._content.read(size)

    def seek(self, offset: int, /) -> int:
        return self._content.seek(offset)

"""The entries of a compile cache in S3. A request lists up to 1,000 entries, or reads or writes one."""

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
"""Maximum number of bytes in one upload request (Amazon S3 user guide, uploading objects)."""
ENTRY_ERROR_CODES = ("KeyTooLongError", "EntityTooLarge")
"""Error codes that concern only one entry: the others can still be stored."""
PRECONDITION_FAILED = 412
"""Status code if the object exists or has another ETag. After status 409, ConditionalRequestConflict, the request is
retried, because the result of the concurrent request is unknown."""

_TAR = "application/x-tar"


class Stored(NamedTuple):
    """An object in a list.

    Attributes:
        key: Key below the listed URL.
        size: Size in bytes.
        modified: Seconds since 1970, by S3's clock; 0 if unknown.
    """

    key: str
    size: int
    etag: str
    modified: float = 0.0


class ObjectState(NamedTuple):
    """The state of an object in S3.

    Attributes:
        digest: The digest in its metadata; empty without one.
        expires: When a lifecycle rule deletes it, in seconds since 1970; None without a rule.
        is_versioned: Whether S3 retains replaced versions, and bills them.
    """

    etag: str
    digest: str
    expires: float | None
    is_versioned: bool


class UnstorableError(Exception):
    """The reason why an entry cannot be packed or stored. Other entries are not affected."""


class Entries(Objects):
    """Requests to S3. All raise OSError without a response, and S3Error if S3 refuses them."""

    def read(self, url: str, sink: Sink) -> tuple[str, str] | None:
        """Pass an object to the sink. Returns its digest, empty without one, and ETag; None if it does not exist."""
        response = self._send("GET", url, {}, b"", (200, 404), into=sink)
        if response.status == 404:
            return None
        return response.headers.get(f"x-amz-meta-{DIGEST}", ""), response.headers.get("ETag", "")

    def add(self, url: str, file: Path, digest: str, *, replaced: str = "", check: Callable[[], object]) -> bool:
        """Store a file with its SHA-256 in the metadata. Returns whether the file was stored.

        Args:
            url: URL of the object.
            file: The file.
            digest: SHA-256 of the file, in hexadecimal.
            replaced: ETag of the object to replace: objects with another ETag are kept. Default: any object is kept.
            check: Called before each read of the file. Its errors end the upload and are raised as OSError.

        Raises:
            UnstorableError: S3 cannot store this file: the file is too large, or its key is too long.
            OSError: The file cannot be read, or S3 refuses the request or does not answer.
        """
        size = file.stat().st_size
        if size > LARGEST:
            raise UnstorableError(f"it is {size / 1024**3:.1f} GiB, and S3 accepts at most 5 GiB per request")
        headers = {
            "content-type": _TAR,
            "content-length": str(size),
            f"x-amz-meta-{DIGEST}": digest,
            **({"if-match": replaced} if replaced else {"if-none-match": "*"}),
        }
        accepted = (200, 404, PRECONDITION_FAILED) if replaced else (200, PRECONDITION_FAILED)
        with file.open("rb") as content:
            try:
                sent = self._send("PUT", url, headers, _Checked(content, check), accepted, digest=digest)
            except S3Error as error:
                if error.code in ENTRY_ERROR_CODES:
                    raise UnstorableError(str(error)) from None
                raise
        return sent.status == 200

    @property
    def now(self) -> float:
        """Seconds since 1970, by S3's clock if known."""
        return time.time() + (self.clock_offset or 0.0)

    def head(self, url: str) -> ObjectState | None:
        """The state of an object; None if it does not exist."""
        response = self._send("HEAD", url, {}, b"", (200, 404))
        headers = response.headers
        if response.status == 404:
            return None
        digest, is_versioned = headers.get(f"x-amz-meta-{DIGEST}", ""), "x-amz-version-id" in headers
        return ObjectState(headers.get("ETag", ""), digest, _expires(headers), is_versioned)

    def renew(self, url: str, current: ObjectState) -> bool:
        """Copy an object onto itself in S3, which resets its age. False if it no longer exists or has changed.

        S3 refuses such a copy unless it replaces, for example, the metadata (CopyObject, x-amz-metadata-directive).
        """
        headers = {
            "content-type": _TAR,
            "x-amz-copy-source": quote(url[len("s3:/") :], safe="/-_.~"),
            "x-amz-copy-source-if-match": current.etag,
            "x-amz-metadata-directive": "REPLACE",
            f"x-amz-meta-{DIGEST}": current.digest,
        }
        answer = self._send("PUT", url, headers, b"", (200, 404, PRECONDITION_FAILED))
        # S3 may send status 200 before it has copied.
        if b"<Error>" in answer.body and answer.status == 200:
            raise S3Error(f"a copy of {url}", answer)
        return answer.status == 200

    def entries(self, url: str, most_requests: int = 100) -> list[Stored]:
        """The objects below a URL that ends with a slash, sorted by key: at most 1,000 for each allowed request."""
        prefix = url[len("s3://") :].partition("/")[2]
        objects = self.list(url, below=True, most_requests=most_requests)
        return [Stored(each.key[len(prefix) :], each.size, each.etag, _seconds(each.modified)) for each in objects]


def _seconds(text: str) -> float:
    """Seconds since 1970 of a time in a list, such as 2026-11-21T12:00:00.000Z; 0 if invalid."""
    with contextlib.suppress(ValueError):
        return datetime.strptime(f"{text[:19]}+0000", "%Y-%m-%dT%H:%M:%S%z").timestamp()
    return 0.0


def _expires(headers: Message[str, str]) -> float | None:
    """The time in x-amz-expiration, such as expiry-date="Fri, 23 Dec 2012 00:00:00 GMT", rule-id="1" (HeadObject)."""
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

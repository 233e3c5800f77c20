"""S3 operations that reports do not need: conditional writes, large files, lists."""

from __future__ import annotations

import hashlib
import itertools
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote_plus

from .s3 import S3, S3Error
from .web import Body, FileSink

PART_BYTES = 512 * 1024**2
"""Larger files are uploaded in parts of this size in bytes: S3 accepts 5 GiB per request, and a broken connection loses
only one part."""

MAX_PARTS = 10_000
"""The maximum number of parts (Amazon S3 user guide, multipart upload limits)."""

BLOCK = 1024 * 1024
CHANGED = (412, 409)
"""Status codes of a conditional write if the object exists or is being written: PreconditionFailed,
ConditionalRequestConflict."""


OBJECT_FIELDS = ("Key", "LastModified", "Size", "ETag")


class Object(NamedTuple):
    """An object in a list. `modified` is S3's time in ISO 8601, `size` is in bytes."""

    key: str
    modified: str
    size: int
    etag: str


class Objects(S3):
    """All requests raise OSError without a response, and S3Error if S3 refuses them."""

    def create(self, url: str, body: bytes, content_type: str = "application/json") -> bool:
        """Store an object unless it exists. Returns whether it was stored."""
        headers = {"content-type": content_type, "if-none-match": "*"}
        return self._send("PUT", url, headers, body, (200, *CHANGED)).status == 200

    def put_file(self, url: str, file: Path, digest: str = "") -> None:
        """Store a file as long as it is now: it may grow in the meantime.

        Args:
            url: URL of the object.
            file: The file.
            digest: SHA-256 of the file in hexadecimal, if known. Not used for a file that is uploaded in parts.
        """
        size = file.stat().st_size
        if size > PART_BYTES:
            self._put_parts(url, file, size)
            return
        headers = {"content-type": "application/octet-stream", "content-length": str(size)}
        with FilePart(file, 0, size) as content:
            self._send("PUT", url, headers, content, (200,), digest=digest or content.digest())

    def _put_parts(self, url: str, file: Path, size: int) -> None:
        """Store a file in parts. A lifecycle rule deletes incomplete uploads, because nodes have no permission to."""
        kind = {"content-type": "application/octet-stream"}
        begun = ElementTree.fromstring(self._send("POST", url, kind, b"", (200,), query="uploads=").body)
        upload = f"uploadId={quote(begun.findtext('{*}UploadId', ''), safe='-_.~')}"
        length = max(PART_BYTES, -(-size // MAX_PARTS))
        done = ""
        for number, start in enumerate(range(0, size, length), 1):
            with FilePart(file, start, min(length, size - start)) as part:
                headers = {"content-length": str(part.size)}
                query = f"partNumber={number}&{upload}"
                answer = self._send("PUT", url, headers, part, (200,), digest=part.digest(), query=query)
            done += f"<Part><PartNumber>{number}</PartNumber><ETag>{answer.headers['ETag']}</ETag></Part>"
        body = f"<CompleteMultipartUpload>{done}</CompleteMultipartUpload>".encode()
        answer = self._send("POST", url, {"content-type": "application/xml"}, body, (200,), query=upload)
        # S3 sends status 200 before it has assembled the parts.
        if b"<Error>" in answer.body:
            raise S3Error(f"POST {url}", answer)

    def get_file(self, url: str, file: Path) -> bool:
        """Download an object to a file. False if the object does not exist; the file is then empty."""
        with file.open("wb") as content:
            return self._send("GET", url, {}, b"", (200, 404), into=FileSink(content)).status == 200

    def list(self, url: str, *, below: bool = False, most_requests: int | None = None) -> list[Object]:
        """The objects whose URLs begin with this one, sorted by key.

        Args:
            url: URL of a folder, with or without the start of a name.
            below: Whether to include objects in folders below it.
            most_requests: Maximum number of requests. Default: unlimited.
        """
        bucket, _, prefix = url[len("s3://") :].partition("/")
        objects: list[Object] = []
        token = ""
        for number in itertools.count(1):
            parameters = {"continuation-token": token} if token else {}
            # XML cannot represent every character of a key.
            parameters.update({"list-type": "2", "encoding-type": "url", "prefix": prefix})
            parameters.update({} if below else {"delimiter": "/"})
            query = "&".join(f"{name}={quote(value, safe='-_.~')}" for name, value in sorted(parameters.items()))
            response = ElementTree.fromstring(self._send("GET", f"s3://{bucket}/", {}, b"", (200,), query=query).body)
            for item in response.iterfind("{*}Contents"):
                key, modified, size, etag = (item.findtext(f"{{*}}{name}", "") for name in OBJECT_FIELDS)
                objects.append(Object(unquote_plus(key), modified, int(size or 0), etag))
            token = response.findtext("{*}NextContinuationToken", "")
            if not token or number == most_requests:
                break
        return objects


class FilePart:
    """A range of a file from `start`, which reads like a whole file. Raises OSError."""

    def __init__(self, file: Path, start: int, size: int) -> None:
        self.size, self._start = size, start
        self._content = file.open("rb")
        self.seek(0)

    def __enter__(self) -> FilePart:
        return self

    def __exit__(self, *_: object) -> None:
        self._content.close()

    def read(self, size: int = -1, /) -> bytes:
        left = self._start + self.size - self._content.tell()
        return self._content.read(left if size < 0 else min(left, size))

    def seek(self, offset: int, /) -> int:
        return self._content.seek(self._start + offset) - self._start

    def digest(self) -> str:
        """SHA-256 in hexadecimal."""
        return _sha256(self)


def file_digest(file: Path) -> str:
    """SHA-256 of a file in hexadecimal. Raises OSError."""
    with file.open("rb") as content:
        return _sha256(content)


def _sha256(content: Body) -> str:
    digest = hashlib.sha256()
    for block in iter(lambda: content.read(BLOCK), b""):
        digest.update(block)
    return digest.hexdigest()

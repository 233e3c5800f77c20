"""More of S3 than a node's report needs: conditional writes, files of any size up to S3's limit, lists."""

from __future__ import annotations

import hashlib
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from .s3 import S3

LARGEST_PUT = 5 * 1024**3
"""Bytes: S3 takes no larger object in one request (Amazon S3 user guide, uploading objects)."""

BLOCK = 1024 * 1024
CHANGED = (412, 409)
"""Statuses of a conditional write when another one came first: PreconditionFailed, ConditionalRequestConflict."""


class Object(NamedTuple):
    """An object of a list. modified: ISO 8601, as S3 writes it."""

    key: str
    modified: str


class Objects(S3):
    """Each method raises OSError; S3Error if S3 refuses."""

    def create(self, url: str, body: bytes, content_type: str = "application/json") -> bool:
        """Store an object unless there is one. False, with nothing stored, when there is."""
        headers = {"content-type": content_type, "if-none-match": "*"}
        return self._send("PUT", url, headers, body, (200, *CHANGED)).status == 200

    def put_file(self, url: str, file: Path, digest: str = "") -> None:
        """Store a file. digest: its SHA-256 in hexadecimal, where it is known; S3 refuses any other content."""
        size = file.stat().st_size
        if size > LARGEST_PUT:
            raise OSError(f"{file.name} has {size / 1024**3:.1f} GiB; S3 takes files of up to 5 GiB: save it in parts")
        headers = {"content-type": "application/octet-stream", "content-length": str(size)}
        with file.open("rb") as content:
            self._send("PUT", url, headers, content, (200,), digest=digest or sha256_of(file))

    def get_file(self, url: str, file: Path) -> bool:
        """Replace a file by an object. False when there is no object; the file is empty then."""
        with file.open("wb") as content:
            return self._send("GET", url, {}, b"", (200, 404), into=content).status == 200

    def list(self, url: str) -> list[Object]:
        """The objects whose URL begins with this one and has no further slash, in the order of their keys."""
        bucket, _, prefix = url[len("s3://") :].partition("/")
        found: list[Object] = []
        token = ""
        while True:
            parameters = {"continuation-token": token} if token else {}
            parameters.update({"delimiter": "/", "list-type": "2", "prefix": prefix})
            query = "&".join(f"{name}={quote(value, safe='-_.~')}" for name, value in sorted(parameters.items()))
            response = ElementTree.fromstring(self._send("GET", f"s3://{bucket}/", {}, b"", (200,), query=query).body)
            for item in response.iterfind("{*}Contents"):
                found.append(Object(item.findtext("{*}Key", ""), item.findtext("{*}LastModified", "")))
            token = response.findtext("{*}NextContinuationToken", "")
            if not token:
                return found


def sha256_of(file: Path) -> str:
    """In hexadecimal. Raises OSError."""
    digest = hashlib.sha256()
    with file.open("rb") as content:
        for block in iter(lambda: content.read(BLOCK), b""):
            digest.update(block)
    return digest.hexdigest()

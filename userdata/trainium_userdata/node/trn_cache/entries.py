"""The entries of a compile cache in S3: a list is one request for each 1,000, reading or writing an entry is one."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from trainium_core.compile_cache.place import DIGEST
from trn_node.objects import Objects
from trn_node.web import Sink

LARGEST = 5 * 1024**3
"""Bytes: S3 takes no larger object in one request (Amazon S3 user guide, uploading objects)."""
THERE = 412
"""PreconditionFailed. With 409, ConditionalRequestConflict, it is not known who came first: it is tried again."""


class Stored(NamedTuple):
    """An object of a list. key: below the URL that was listed."""

    key: str
    size: int
    etag: str


class Entries(Objects):
    """Each method raises OSError; S3Error if S3 refuses. requests: sent so far, but for retries."""

    requests = 0

    def read(self, url: str, sink: Sink) -> tuple[str, str] | None:
        """Read an object; its digest as it was stored, and its ETag. None when there is no object."""
        self.requests += 1
        response = self._send("GET", url, {}, b"", (200, 404), into=sink)
        if response.status == 404:
            return None
        return response.headers.get(f"x-amz-meta-{DIGEST}", ""), response.headers.get("ETag", "")

    def add(self, url: str, file: Path, digest: str, *, replaced: str = "") -> bool:
        """Store a file with its SHA-256 unless there is an object: then False.

        replaced: ETag of an object that is to be replaced; False when another one is there.
        """
        self.requests += 1
        size = file.stat().st_size
        if size > LARGEST:
            raise OSError(f"an entry of {size / 1024**3:.1f} GiB: S3 takes up to 5 GiB at a time")
        headers = {
            "content-type": "application/x-tar",
            "content-length": str(size),
            f"x-amz-meta-{DIGEST}": digest,
            **({"if-match": replaced} if replaced else {"if-none-match": "*"}),
        }
        accepted = (200, 404, THERE) if replaced else (200, THERE)
        with file.open("rb") as content:
            return self._send("PUT", url, headers, content, accepted, digest=digest).status == 200

    def entries(self, url: str, most_requests: int = 100) -> list[Stored]:
        """All objects below a URL that ends with a slash, in the order of their keys, as far as the requests go."""
        bucket, _, prefix = url[len("s3://") :].partition("/")
        found: list[Stored] = []
        token = ""
        for _ in range(most_requests):
            self.requests += 1
            parameters = {"list-type": "2", "prefix": prefix, **({"continuation-token": token} if token else {})}
            query = "&".join(f"{name}={quote(value, safe='-_.~')}" for name, value in sorted(parameters.items()))
            page = ElementTree.fromstring(self._send("GET", f"s3://{bucket}/", {}, b"", (200,), query=query).body)
            for item in page.iterfind("{*}Contents"):
                key, size = item.findtext("{*}Key", ""), item.findtext("{*}Size", "0")
                found.append(Stored(key[len(prefix) :], int(size), item.findtext("{*}ETag", "")))
            token = page.findtext("{*}NextContinuationToken", "")
            if not token:
                break
        return found

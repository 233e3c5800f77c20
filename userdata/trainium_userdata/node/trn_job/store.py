"""The S3 folders in which the nodes of a job exchange and store objects."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, TypeVar

from trainium_wire.formats import json_value
from trn_node.imds import Imds
from trn_node.objects import Objects

CONNECTIONS = 16
"""Number of files that are uploaded or downloaded at the same time."""

Item = TypeVar("Item")


class Store:
    """A folder in S3. Keys are relative to it. All requests raise OSError if S3 does not answer or refuses.

    Args:
        s3: Requests to S3.
        url: S3 URL of the folder, without a slash at its end.
    """

    def __init__(self, s3: Objects, url: str) -> None:
        self._s3, self._url = s3, url

    @property
    def imds(self) -> Imds:
        """The source of the credentials."""
        return self._s3.imds

    def at(self, url: str) -> Store:
        """Another folder in S3."""
        return Store(self._s3, url.rstrip("/"))

    def keys(self) -> list[str]:
        """The keys of all objects below the folder."""
        bucket = self._url[: self._url.index("/", len("s3://")) + 1]
        objects = self._s3.list(f"{self._url}/", below=True)
        return [stored.key[len(self._url) - len(bucket) + 1 :] for stored in objects]

    def read(self, key: str) -> dict[str, Any] | None:
        """A JSON object; None if it does not exist. Raises ValueError if it is not JSON."""
        stored = self._s3.get(f"{self._url}/{key}")
        return json_value(stored[0]) if stored else None

    def write(self, key: str, content: Mapping[str, Any]) -> None:
        self._s3.put(f"{self._url}/{key}", json.dumps(content).encode())

    def create(self, key: str, content: Mapping[str, Any]) -> bool:
        """Write an object unless it exists. Returns whether it was written."""
        return self._s3.create(f"{self._url}/{key}", json.dumps(content).encode())

    def write_text(self, key: str, text: bytes) -> None:
        self._s3.put(f"{self._url}/{key}", text, "text/plain; charset=utf-8")

    def upload(self, key: str, file: Path, digest: str = "") -> None:
        """Store a file. digest: SHA-256 of the file in hexadecimal, if known."""
        self._s3.put_file(f"{self._url}/{key}", file, digest)

    def download(self, key: str, file: Path) -> bool:
        """Download an object. Returns False if it does not exist; the file is then empty."""
        file.parent.mkdir(parents=True, exist_ok=True)
        return self._s3.get_file(f"{self._url}/{key}", file)


def in_parallel(task: Callable[[Item], None], items: list[Item]) -> None:
    """Run a task for all items. After an error, no more are begun, and the error is raised."""
    if not items:
        return
    with ThreadPoolExecutor(min(CONNECTIONS, len(items))) as connections:
        futures = [connections.submit(task, item) for item in items]
        done, left = wait(futures, return_when=FIRST_EXCEPTION)
        for future in left:
            future.cancel()
    for future in done:
        future.result()

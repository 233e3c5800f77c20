"""Reads and changes a compile cache in S3."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

from trainium_core.compile_cache.contents import CachedEntry, CachedObject
from trainium_core.compile_cache.location import CacheLocation
from trainium_runtime.aws_errors import DENIED, read_errors, write_errors
from trainium_runtime.aws_service import AwsService, Clients
from trainium_runtime.errors import RequestRefusedError

_KEYS_PER_DELETE = 1000
"""The maximum of a DeleteObjects request (Amazon S3 API Reference)."""


class AwsCompileCache(AwsService):
    """One cache. Reads raise UnavailableError, changes RequestRefusedError."""

    def __init__(self, region: str, location: CacheLocation, *, clients: Clients | None = None) -> None:
        super().__init__(region, clients=clients)
        self.location = location

    def objects(self) -> Iterator[CachedObject]:
        """All objects below the cache's URL, with one request for each 1,000."""
        prefix = f"{self.location.folder}/"
        with read_errors(self._permission("s3:ListBucket")):
            pages = self.client("s3").get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=self.location.bucket, Prefix=prefix):
                for entry in page.get("Contents", []):
                    key = entry["Key"].removeprefix(prefix)
                    yield CachedObject(key=key, size=entry["Size"], modified=entry["LastModified"])

    def delete_entries(self, entries: Sequence[CachedEntry], *, on_progress: Callable[[int, int], object]) -> None:
        """Delete entries, in an order in which concurrent readers never take a partial entry for a finished one.

        Args:
            entries: The entries.
            on_progress: Called with the number of deleted objects, and of all objects.
        """
        first = [entry.keys_in_deletion_order[0] for entry in entries]
        rest = [*chain.from_iterable(entry.keys_in_deletion_order[1:] for entry in entries)]
        done = 0
        for keys in (first, rest):
            for start in range(0, len(keys), _KEYS_PER_DELETE):
                part = keys[start : start + _KEYS_PER_DELETE]
                self._delete(part)
                done += len(part)
                on_progress(done, len(first) + len(rest))

    def _delete(self, keys: Sequence[str]) -> None:
        entries = [{"Key": f"{self.location.folder}/{key}"} for key in keys]
        with write_errors(self._permission("s3:DeleteObject")):
            answer = self.client("s3").delete_objects(
                Bucket=self.location.bucket, Delete={"Objects": entries, "Quiet": True}
            )
        errors: list[dict[str, Any]] = answer.get("Errors", [])
        if errors:
            first = errors[0]
            denied = f"not allowed: the permission {self._permission('s3:DeleteObject')} is missing"
            why = denied if first.get("Code") in DENIED else f"{first['Key']}: {first.get('Message', '')}"
            raise RequestRefusedError(f"{why} ({len(errors)} in all)")

    def _permission(self, action: str) -> str:
        return f"{action} on the bucket {self.location.bucket}"

"""Lists a compile cache in S3, and deletes entries, with a limited number of requests."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

from trainium_core.compile_cache.contents import CachedEntry, CachedObject
from trainium_core.compile_cache.location import CacheLocation
from trainium_runtime.aws_errors import DENIED, read_errors, write_errors
from trainium_runtime.aws_service import AwsService, Clients
from trainium_runtime.errors import RequestRefusedError

KEYS_PER_DELETE = 1000
"""The maximum of a DeleteObjects request, and of a page of a list (Amazon S3 API Reference)."""


class RequestLimitError(Exception):
    """The allowed number of requests is used up."""


class RequestLimit:
    """Limits the number of requests."""

    def __init__(self, maximum: int) -> None:
        self.maximum, self.sent = maximum, 0

    def take(self) -> None:
        """Count a request.

        Raises:
            RequestLimitError: The limit is reached.
        """
        if self.sent >= self.maximum:
            raise RequestLimitError(f"{self.maximum} requests were sent, and no more are allowed")
        self.sent += 1


class AwsCompileCache(AwsService):
    """A compile cache. Reads raise UnavailableError, changes RequestRefusedError, and both RequestLimitError."""

    def __init__(
        self, region: str, location: CacheLocation, limit: RequestLimit, *, clients: Clients | None = None
    ) -> None:
        super().__init__(region, clients=clients)
        self.location, self._limit = location, limit

    def objects(self) -> Iterator[CachedObject]:
        """All objects below the cache's URL, with one request for every 1,000 objects."""
        prefix, token = f"{self.location.folder}/", ""
        while True:
            self._limit.take()
            more = {"ContinuationToken": token} if token else {}
            with read_errors(self._permission("s3:ListBucket")):
                page = self.client("s3").list_objects_v2(Bucket=self.location.bucket, Prefix=prefix, **more)
            for entry in page.get("Contents", []):
                key = entry["Key"].removeprefix(prefix)
                yield CachedObject(key=key, size=entry["Size"], modified=entry["LastModified"])
            token = page.get("NextContinuationToken", "")
            if not token:
                return

    def delete_entries(self, entries: Sequence[CachedEntry], *, on_progress: Callable[[int, int], object]) -> None:
        """Delete entries, in an order in which concurrent readers never take a partial entry for a finished one.

        Args:
            entries: The entries to delete.
            on_progress: Called after each request with the number of deleted objects, and the number of all.
        """
        first = [entry.keys_in_deletion_order[0] for entry in entries]
        rest = [*chain.from_iterable(entry.keys_in_deletion_order[1:] for entry in entries)]
        done = 0
        for keys in (first, rest):
            for start in range(0, len(keys), KEYS_PER_DELETE):
                part = keys[start : start + KEYS_PER_DELETE]
                self._delete(part)
                done += len(part)
                on_progress(done, len(first) + len(rest))

    def _delete(self, keys: Sequence[str]) -> None:
        self._limit.take()
        entries = [{"Key": self._key(key)} for key in keys]
        with write_errors(self._permission("s3:DeleteObject")):
            answer = self.client("s3").delete_objects(
                Bucket=self.location.bucket, Delete={"Objects": entries, "Quiet": True}
            )
        errors: list[dict[str, Any]] = answer.get("Errors", [])
        if errors:
            first = errors[0]
            denied = f"not allowed: the permission {self._permission('s3:DeleteObject')} is missing"
            why = denied if first.get("Code") in DENIED else f"{first['Key']}: {first.get('Message', '')}"
            left = "1 object was" if len(errors) == 1 else f"{len(errors)} objects were"
            raise RequestRefusedError(f"{why} ({left} not deleted)")

    def _key(self, key: str) -> str:
        return f"{self.location.folder}/{key}"

    def _permission(self, action: str) -> str:
        return f"{action} on the bucket {self.location.bucket}"

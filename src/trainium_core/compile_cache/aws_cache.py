"""Asks S3 about a compile cache, and changes it, with no more requests than it is given."""

import hashlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from trainium_core.compile_cache.contents import CachedObject
from trainium_core.compile_cache.location import CacheLocation
from trainium_core.compile_cache.place import DIGEST
from trainium_runtime.aws_errors import DENIED, read_errors, write_errors
from trainium_runtime.aws_service import AwsService, Clients
from trainium_runtime.errors import RequestRefusedError

KEYS_PER_DELETE = 1000
"""Of one DeleteObjects request, and of a page of a list (Amazon S3 API reference)."""

_BLOCK = 1024 * 1024
_ABSENT = ("NoSuchKey", "404", "NotFound")


class RequestLimitError(Exception):
    """All requests that were allowed have been sent."""


class RequestLimit:
    """Counts requests; threads may share it."""

    def __init__(self, most: int) -> None:
        self.most, self.sent = most, 0
        self._lock = threading.Lock()

    def take(self) -> None:
        """Raises RequestLimitError where this would be one too many."""
        with self._lock:
            if self.sent >= self.most:
                raise RequestLimitError(f"{self.most} requests were sent, and no more are allowed")
            self.sent += 1


class AwsCompileCache(AwsService):
    """One cache. Reading raises UnavailableError, changing RequestRefusedError, and each RequestLimitError."""

    def __init__(
        self, region: str, location: CacheLocation, limit: RequestLimit, *, clients: Clients | None = None
    ) -> None:
        super().__init__(region, clients=clients)
        self.location, self._limit = location, limit

    def objects(self) -> Iterator[CachedObject]:
        """All that is below the cache's URL, a request for each 1,000."""
        prefix, token = f"{self.location.folder}/", ""
        while True:
            self._limit.take()
            more = {"ContinuationToken": token} if token else {}
            with read_errors(self._permission("s3:ListBucket")):
                page = self.client("s3").list_objects_v2(Bucket=self.location.bucket, Prefix=prefix, **more)
                found = [
                    CachedObject(
                        key=entry["Key"].removeprefix(prefix),
                        size=entry["Size"],
                        modified=entry["LastModified"],
                        etag=entry["ETag"],
                    )
                    for entry in page.get("Contents", [])
                ]
                token = page.get("NextContinuationToken", "")
            yield from found
            if not token:
                return

    def digests(self, key: str) -> tuple[str, str] | None:
        """The SHA-256 that was stored with an object, and that of its content now; None when it is gone."""
        self._limit.take()
        with read_errors(self._permission("s3:GetObject"), absent=_ABSENT):
            answer = self.client("s3").get_object(Bucket=self.location.bucket, Key=self._key(key))
            found = hashlib.sha256()
            for block in answer["Body"].iter_chunks(_BLOCK):
                found.update(block)
            return answer["Metadata"].get(DIGEST, ""), found.hexdigest()
        return None

    def delete(self, keys: Sequence[str]) -> None:
        """Up to 1,000 objects at once, whatever they hold."""
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
            raise RequestRefusedError(f"{why} ({len(errors)} in all)")

    def is_unchanged(self, found: CachedObject) -> bool:
        """Whether an object is still the one that was listed."""
        self._limit.take()
        with read_errors(self._permission("s3:GetObject"), absent=_ABSENT):
            answer = self.client("s3").head_object(Bucket=self.location.bucket, Key=self._key(found.key))
            return answer["ETag"] == found.etag
        return False

    def copy_from(self, source: CacheLocation, key: str, new_key: str) -> None:
        """An object of another cache, with its checksum. S3 copies up to 5 GB in one request, also between regions."""
        self._limit.take()
        copied = {"Bucket": source.bucket, "Key": f"{source.folder}/{key}"}
        with write_errors(f"s3:GetObject on the bucket {source.bucket} or {self._permission('s3:PutObject')}"):
            self.client("s3").copy_object(Bucket=self.location.bucket, Key=self._key(new_key), CopySource=copied)

    def _key(self, key: str) -> str:
        return f"{self.location.folder}/{key}"

    def _permission(self, action: str) -> str:
        return f"{action} on the bucket {self.location.bucket}"

"""Requests to a bucket of node records, which has the jobs of a cluster."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from trainium_runtime.aws_errors import read_errors, write_errors
from trainium_runtime.aws_service import AwsService, Clients
from trainium_runtime.errors import ABSENT_OBJECT
from trainium_wire.formats import json_value

_PRECONDITION_FAILED = ("PreconditionFailed", "ConditionalRequestConflict")
_LARGEST_JSON = 262_144


class JobBucket(AwsService):
    """Reads raise UnavailableError, writes RequestRefusedError.

    Args:
        region: The region of the bucket.
        bucket: The name of the bucket.
        clients: The clients of boto3. Default: new ones.
    """

    def __init__(self, region: str, bucket: str, *, clients: Clients | None = None) -> None:
        super().__init__(region, clients=clients)
        self.bucket = bucket

    def _json(self, key: str, *, bucket: str | None = None, most: int = _LARGEST_JSON) -> Mapping[str, Any] | None:
        """The content of a JSON object in S3; empty if invalid, None if the key does not exist."""
        stored = self._get(key, bucket=bucket, most=most)
        if stored is None:
            return None
        try:
            raw: Any = json_value(stored[0])
        except ValueError:
            return {}
        return cast("Mapping[str, Any]", raw) if isinstance(raw, dict) else {}

    def _get(self, key: str, *, most: int = _LARGEST_JSON, bucket: str | None = None) -> tuple[bytes, str] | None:
        with read_errors(self._permission("s3:GetObject", bucket), absent=ABSENT_OBJECT):
            answer = self.client("s3").get_object(Bucket=bucket or self.bucket, Key=key)
            return answer["Body"].read(most), answer["ETag"]
        return None

    def _put(self, key: str, body: bytes, content_type: str = "application/json", **condition: str) -> bool:
        """Write an object. Returns False if the condition of the request failed."""
        with write_errors(self._permission("s3:PutObject"), absent=_PRECONDITION_FAILED):
            self.client("s3").put_object(Bucket=self.bucket, Key=key, Body=body, ContentType=content_type, **condition)
            return True
        return False

    def _keys(self, prefix: str, *, after: str = "") -> Iterator[str]:
        return (entry["Key"] for entry in self._entries(prefix, after=after))

    def _entries(self, prefix: str, *, after: str = "", bucket: str | None = None) -> Iterator[Mapping[str, Any]]:
        with read_errors(self._permission("s3:ListBucket", bucket)):
            pages = self.client("s3").get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=bucket or self.bucket, Prefix=prefix, StartAfter=after):
                yield from page.get("Contents", [])

    def _permission(self, action: str, bucket: str | None = None) -> str:
        return f"{action} on the bucket {bucket or self.bucket}"

"""Requests to a bucket of node records, which has the jobs of a cluster."""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from trainium_core.jobs.aws_transfers import upload_object
from trainium_core.jobs.source_files import input_files, open_input
from trainium_runtime.aws_errors import read_errors, write_errors
from trainium_runtime.aws_service import AwsService, Clients
from trainium_runtime.errors import ABSENT_OBJECT, CHANGED_OBJECT
from trainium_wire.formats import json_value

_LARGEST_JSON = 262_144


class JobBucket(AwsService):
    """Reads raise UnavailableError, writes RequestRefusedError, and both the errors of `find`.

    Args:
        region: The region of the bucket.
        find: Returns the name of the bucket. It is called when the name is first needed.
        clients: The clients of boto3. Default: new ones.
    """

    def __init__(self, region: str, find: Callable[[], str], *, clients: Clients | None = None) -> None:
        super().__init__(region, clients=clients)
        self._find = find

    @cached_property
    def name(self) -> str:
        """The name of the bucket."""
        return self._find()

    def json(self, key: str, *, bucket: str | None = None, most: int = _LARGEST_JSON) -> Mapping[str, Any] | None:
        """The content of a JSON object in S3; empty if invalid, None if the key does not exist."""
        stored = self.get(key, bucket=bucket, most=most)
        if stored is None:
            return None
        try:
            raw: Any = json_value(stored[0])
        except ValueError:
            return {}
        return cast("Mapping[str, Any]", raw) if isinstance(raw, dict) else {}

    def get(self, key: str, *, most: int = _LARGEST_JSON, bucket: str | None = None) -> tuple[bytes, str] | None:
        """The content and the ETag of an object; None if the key does not exist."""
        bucket = bucket or self.name
        with read_errors(f"s3:GetObject on the bucket {bucket}", absent=ABSENT_OBJECT):
            answer = self.client("s3").get_object(Bucket=bucket, Key=key)
            return answer["Body"].read(most), answer["ETag"]
        return None

    def put(self, key: str, body: bytes, content_type: str = "application/json", **condition: str) -> bool:
        """Write an object. Returns False if the condition of the request failed."""
        bucket = self.name
        with write_errors(f"s3:PutObject on the bucket {bucket}", absent=CHANGED_OBJECT):
            self.client("s3").put_object(Bucket=bucket, Key=key, Body=body, ContentType=content_type, **condition)
            return True
        return False

    def upload(self, key: str, path: Path) -> None:
        """Upload a local file, or the files of a directory. Raises JobError if one cannot be read."""
        files = {key: path}
        if path.is_dir():
            files = {f"{key}/{name}": file for name, file in input_files(path).files.items()}
        for object_key, file in files.items():
            with open_input(file) as content:
                upload_object(self.client("s3"), self.name, object_key, content)

    def keys(self, prefix: str, *, after: str = "") -> Iterator[str]:
        return (entry["Key"] for entry in self.entries(prefix, after=after))

    def entries(self, prefix: str, *, after: str = "", bucket: str | None = None) -> Iterator[Mapping[str, Any]]:
        bucket = bucket or self.name
        with read_errors(f"s3:ListBucket on the bucket {bucket}"):
            pages = self.client("s3").get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=bucket, Prefix=prefix, StartAfter=after):
                yield from page.get("Contents", [])

"""What the functions read of the records that nodes write: a limited number of objects of a limited size."""

import io
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from trainium_runtime.node_store import NodeStore
from trainium_wire.node_record import LARGEST_RECORD

START = datetime(2026, 1, 1, tzinfo=UTC)


class Bucket:
    """An S3 client with records of these sizes, the oldest first, which notes what is read."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes, self.read = sizes, set[str]()

    def get_paginator(self, operation: str) -> "Bucket":
        assert operation == "list_objects_v2"
        return self

    def paginate(self, **_: str) -> Iterator[dict[str, Any]]:
        yield {
            "Contents": [
                {
                    "Key": f"nodes/AROAEXAMPLEEXAMPLE0:i-{number:017x}.json",
                    "Size": size,
                    "ETag": "one",
                    "LastModified": START + timedelta(seconds=number),
                }
                for number, size in enumerate(self.sizes)
            ]
        }

    def get_object(self, **request: str) -> dict[str, Any]:
        self.read.add(request["Key"])
        return {"Body": io.BytesIO(b"{}")}


def test_only_the_newest_5000_records_are_read() -> None:
    s3 = Bucket([2] * 5_002)
    assert len(NodeStore(s3, "records", "nodes").records()) == 5_000
    assert s3.read == {f"nodes/AROAEXAMPLEEXAMPLE0:i-{number:017x}.json" for number in range(2, 5_002)}


def test_record_above_the_largest_size_is_not_read() -> None:
    s3 = Bucket([LARGEST_RECORD, LARGEST_RECORD + 1])
    assert len(NodeStore(s3, "records", "nodes").records()) == 2
    assert s3.read == {"nodes/AROAEXAMPLEEXAMPLE0:i-00000000000000000.json"}

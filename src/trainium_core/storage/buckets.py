"""Buckets of the user's own."""

from typing import Protocol


class Buckets(Protocol):
    def bucket_region(self, name: str) -> str | None:
        """The region of a bucket, empty where it is not returned; None when there is no such bucket."""
        ...

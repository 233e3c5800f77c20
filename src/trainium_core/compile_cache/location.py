"""The location of a compile cache: a bucket and a folder."""

import re
from dataclasses import dataclass

from trainium_core.naming import CACHE_PREFIX
from trainium_core.setting_schema.setting import BUCKET_NAME

_URL = re.compile(rf"(?:s3://)?(?P<bucket>{BUCKET_NAME})(?:/(?P<folder>[^/].*?))?/*")


@dataclass(frozen=True, kw_only=True)
class CacheLocation:
    """The location of a cache.

    Attributes:
        bucket: Name of the bucket.
        folder: Key prefix without leading and trailing slashes.
    """

    bucket: str
    folder: str = CACHE_PREFIX

    @property
    def url(self) -> str:
        """The URL, such as s3://bucket/neuron-compile-cache."""
        return f"s3://{self.bucket}/{self.folder}"


def cache_location(text: str) -> CacheLocation:
    """Parse the name of a bucket or an S3 URL.

    Raises:
        ValueError: The text is neither.
    """
    match = _URL.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is neither the name of a bucket nor a URL such as s3://bucket/{CACHE_PREFIX}")
    return CacheLocation(bucket=match["bucket"], folder=match["folder"] or CACHE_PREFIX)

"""The location of a compile cache: a bucket and a folder."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trainium_core.naming import CACHE_PREFIX
from trainium_core.setting_schema.setting import BUCKET_NAME

_BUCKET = "AWS::S3::Bucket"
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


def locations_in(outputs: Iterable[Mapping[str, str]]) -> tuple[CacheLocation, ...]:
    """The distinct caches in outputs of stacks."""
    values = (value for of_stack in outputs for value in of_stack.values())
    urls = (value for value in values if re.fullmatch(rf"s3://[^/]+/{CACHE_PREFIX}/?", value))
    return tuple(dict.fromkeys(map(cache_location, urls)))


def buckets_in(resources: Mapping[str, Any]) -> tuple[str, ...]:
    """Logical IDs of a template's compile cache buckets, which have a lifecycle rule for the cache's folder."""
    return tuple(name for name, made in resources.items() if made.get("Type") == _BUCKET and _has_rule(made))


def _has_rule(made: Mapping[str, Any]) -> bool:
    rules = made.get("Properties", {}).get("LifecycleConfiguration", {}).get("Rules", [])
    return any(str(rule.get("Prefix", "")).startswith(f"{CACHE_PREFIX}/") for rule in rules)

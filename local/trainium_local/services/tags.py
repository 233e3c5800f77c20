"""DescribeTags: the filter `tag:KEY`, which moto ignores, so that the tags of everything would be the answer."""

from fnmatch import fnmatchcase
from typing import Any

from moto.ec2.models.tags import TagBackend

_PREFIX = "tag:"

_moto_describe_tags = TagBackend.describe_tags


def describe_tags(backend: Any, filters: dict[str, list[str]] | None = None) -> list[dict[str, str]]:
    given = filters or {}
    wanted = {name.removeprefix(_PREFIX): values for name, values in given.items() if name.startswith(_PREFIX)}
    others = {name: values for name, values in given.items() if not name.startswith(_PREFIX)}
    return [
        tag
        for tag in _moto_describe_tags(backend, others or None)
        if all(
            tag["key"] == key and any(fnmatchcase(tag["value"], v) for v in values) for key, values in wanted.items()
        )
    ]

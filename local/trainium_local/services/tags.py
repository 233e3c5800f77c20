"""DescribeTags: the filter `tag:KEY`, which moto ignores, so that the tags of everything would be the answer."""

from typing import Any


def describe_tags(original: Any, backend: Any, filters: dict[str, list[str]] | None = None) -> list[dict[str, str]]:
    given = dict(filters or {})
    for name in [name for name in given if name.startswith("tag:")]:
        given |= {"key": [name.removeprefix("tag:")], "value": given.pop(name)}
    return original(backend, given or None)

"""Tags in the responses of AWS APIs."""

from collections.abc import Iterable, Mapping


def tag_values(tags: Iterable[Mapping[str, str]] | None) -> dict[str, str]:
    """`[{"Key": "a", "Value": "b"}]` as `{"a": "b"}`; empty for None."""
    return {tag["Key"]: tag["Value"] for tag in tags or ()}

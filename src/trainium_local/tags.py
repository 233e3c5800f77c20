"""Tags in the two forms of AWS APIs."""

from typing import Any


def tag_values(tags: Any) -> dict[str, str]:
    """Return key -> value from a list of `Key` and `Value`, or from a mapping. Empty for None."""
    return {tag["Key"]: tag["Value"] for tag in tags} if isinstance(tags, list) else dict(tags or {})

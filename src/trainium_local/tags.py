"""Tags in both forms in which APIs have them."""

from typing import Any


def tag_values(tags: Any) -> dict[str, str]:
    """Values by key, of a list of `Key` and `Value` or of a mapping; empty for None."""
    return {tag["Key"]: tag["Value"] for tag in tags} if isinstance(tags, list) else dict(tags or {})

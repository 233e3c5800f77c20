"""Where a node finds what belongs to its cluster."""

import re
from dataclasses import dataclass, fields

# The values stand unquoted in the script. A token in the form of the CDK is replaced before bash sees it.
_SAFE = re.compile(r"([A-Za-z0-9./:_-]|\$\{Token\[[^\]]+\]\})+")


@dataclass(frozen=True, kw_only=True)
class NodePlaces:
    """Region and S3 URLs of a cluster; each may hold a CDK token.

    region: AWS region of the node and its buckets. cache_url: S3 URL of the compile cache. report_url: S3 URL of the
    folder that node records go to. Raises ValueError when a value holds a character that bash would interpret.
    """

    region: str
    cache_url: str
    report_url: str

    def __post_init__(self) -> None:
        for place in fields(self):
            value = getattr(self, place.name)
            if not _SAFE.fullmatch(value):
                raise ValueError(f"{place.name}: got {value!r}; allowed are letters, digits and . / : _ -")

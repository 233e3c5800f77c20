"""Which region a word most likely meant."""

import re
from collections.abc import Sequence

from trainium_core.facts import facts
from trainium_core.problems import nearest


def nearest_region(word: str, regions: Sequence[str]) -> str | None:
    """The region that `word` most likely meant: of the same geography and partition, if it names a known one."""
    geography = _geography(word.strip().casefold())
    known = geography in facts()["geographies"]["prefixes"]
    return nearest(word, [region for region in regions if not known or _geography(region) == geography])


def _geography(region: str) -> str:
    """What comes before the direction: us of us-west-2, us-gov of us-gov-west-1."""
    return re.sub(r"-[a-z]+-?[0-9]+[a-z]?$", "", region)

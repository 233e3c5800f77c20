"""The instance types of plans, from data/instance_types.toml and a user's file."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from trainium_core.catalog.file import CatalogError, CatalogFile, Fact, parse_catalog
from trainium_core.catalog.instance_type import InstanceType
from trainium_core.facts import DATA, facts
from trainium_core.problems import nearest


def nearest_region(word: str, regions: Sequence[str]) -> str | None:
    """The region closest to `word`, in the same geography if `word` starts with a known one; None if none is close."""
    geography = _geography(word.strip().casefold())
    known = geography in facts()["geographies"]["prefixes"]
    return nearest(word, [region for region in regions if not known or _geography(region) == geography])


def _geography(region: str) -> str:
    """The part before the direction: us in us-west-2, us-gov in us-gov-west-1."""
    return re.sub(r"-[a-z]+-?[0-9]+[a-z]?$", "", region)


class Catalog(Mapping[str, InstanceType]):
    """Instance types by name.

    Attributes:
        facts: Each value with the key of its source, by instance type and name of the value.
        sources: Title and date of each source, by key.
    """

    def __init__(
        self,
        types: Iterable[InstanceType],
        facts: Mapping[str, Mapping[str, Fact]],
        sources: Mapping[str, Mapping[str, Any]],
    ) -> None:
        self._types = {entry.name: entry for entry in types}
        self.facts = facts
        self.sources = sources

    def __getitem__(self, name: str) -> InstanceType:
        return self._types[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._types)

    def __len__(self) -> int:
        return len(self._types)

    @property
    def regions(self) -> tuple[str, ...]:
        """Every region that offers a type of the catalogue, sorted."""
        return tuple(sorted({region for entry in self.values() for region in entry.zones}))

    def offered_in(self, region: str) -> tuple[str, ...]:
        return tuple(name for name, entry in self.items() if region in entry.zones)

    def overlaid_with(self, file: CatalogFile) -> "Catalog":
        """This catalogue with the types of a file, which replace types of the same name.

        Args:
            file: The file.

        Returns:
            A new catalogue.

        Raises:
            CatalogError: The file and this catalogue use the same key for different sources.
        """
        for key, source in file.sources.items():
            if key in self.sources and source != self.sources[key]:
                raise CatalogError(
                    f"{file.where}: the built-in catalogue has the key {key!r} for another source; choose another key"
                )
        return Catalog([*self.values(), *file.types], {**self.facts, **file.facts}, {**self.sources, **file.sources})


@cache
def builtin_catalog() -> Catalog:
    """The catalogue of this package."""
    file = parse_catalog((DATA / "instance_types.toml").read_text(encoding="utf-8"), "the built-in catalogue")
    return Catalog(file.types, file.facts, file.sources)


def load_catalog(overlay: Path | None = None) -> Catalog:
    """The built-in catalogue, overlaid with a user's file.

    Args:
        overlay: The file, if any.

    Returns:
        The catalogue.

    Raises:
        CatalogError: The file cannot be read, or is invalid.
    """
    if overlay is None:
        return builtin_catalog()
    try:
        text = overlay.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CatalogError(f"{overlay}: cannot be read ({error})") from error
    return builtin_catalog().overlaid_with(parse_catalog(text, str(overlay)))

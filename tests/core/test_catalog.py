"""The built-in catalogue is complete, and has sources."""

from datetime import date

import pytest

from trainium_core.catalog.catalog import builtin_catalog

CATALOG = builtin_catalog()


@pytest.mark.parametrize("name", CATALOG)
def test_every_value_has_a_source_with_date_and_title(name: str) -> None:
    for key, fact in CATALOG.facts[name].items():
        source = CATALOG.sources[fact.source]
        assert isinstance(source["date"], date), key
        assert len(source["title"]) > 10, key

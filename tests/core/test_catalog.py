"""The built-in catalogue: complete, sourced, and what follows from its rows."""

from datetime import date

import pytest

from trainium_core.catalog.catalog import builtin_catalog

CATALOG = builtin_catalog()


@pytest.mark.parametrize("name", CATALOG)
def test_every_value_has_a_source_with_a_date_and_a_title(name: str) -> None:
    for key, fact in CATALOG.facts[name].items():
        source = CATALOG.sources[fact.source]
        assert isinstance(source["date"], date), key
        assert len(source["title"]) > 10, key


@pytest.mark.parametrize("name", CATALOG)
def test_every_value_of_a_type_is_a_fact_but_its_name(name: str) -> None:
    entry = CATALOG[name]
    assert {key: fact.value for key, fact in CATALOG.facts[name].items()} == {
        key: value for key, value in vars(entry).items() if key != "name"
    }


def test_trainium2_shows_all_physical_cores_at_lnc_1() -> None:
    assert CATALOG["trn2.48xlarge"].logical_neuron_cores(1) == 128


def test_a_region_without_trainium_offers_nothing() -> None:
    assert CATALOG.offered_in("eu-central-1") == ()

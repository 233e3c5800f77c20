"""The built-in catalogue: complete, sourced, and what follows from its rows."""

from datetime import date

import pytest

from trainium_core.catalog.catalog import builtin_catalog

CATALOG = builtin_catalog()


def test_the_types_that_aws_sells_as_trainium_are_in_it() -> None:
    assert list(CATALOG) == [
        "trn1.2xlarge",
        "trn1.32xlarge",
        "trn1n.32xlarge",
        "trn2.3xlarge",
        "trn2.48xlarge",
        "trn2u.48xlarge",
    ]


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


@pytest.mark.parametrize(
    ("name", "physical", "at_default", "memory_gib"),
    [
        ("trn1.2xlarge", 2, 2, 32),
        ("trn1.32xlarge", 32, 32, 512),
        ("trn1n.32xlarge", 32, 32, 512),
        ("trn2.3xlarge", 8, 4, 96),
        ("trn2.48xlarge", 128, 64, 1536),
        ("trn2u.48xlarge", 128, 64, 1536),
    ],
)
def test_cores_and_memory_are_those_of_the_neuron_documentation(
    name: str, physical: int, at_default: int, memory_gib: int
) -> None:
    entry = CATALOG[name]
    assert entry.physical_neuron_cores == physical
    assert entry.logical_neuron_cores(entry.default_logical_neuroncore_config) == at_default
    assert entry.total_device_memory_gib == memory_gib


def test_trainium2_shows_all_physical_cores_at_lnc_1() -> None:
    assert CATALOG["trn2.48xlarge"].logical_neuron_cores(1) == 128


@pytest.mark.parametrize("name", CATALOG)
def test_all_types_count_against_the_quota_of_one_family(name: str) -> None:
    assert CATALOG[name].family == "trn"


def test_regions_are_those_that_offer_something() -> None:
    assert CATALOG.regions == tuple(sorted(CATALOG.regions))
    assert all(CATALOG.offered_in(region) for region in CATALOG.regions)


def test_a_region_without_trainium_offers_nothing() -> None:
    assert CATALOG.offered_in("eu-central-1") == ()


def test_zone_ids_are_those_of_all_regions() -> None:
    assert CATALOG["trn1n.32xlarge"].zone_ids == ("use1-az6", "use2-az3", "usw2-az4")

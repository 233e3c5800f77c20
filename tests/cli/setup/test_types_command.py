"""`trn types`: values with sources, and the types of a region."""

import json

from tests.cli.running import run
from trainium_core.catalog.catalog import builtin_catalog

CATALOG = builtin_catalog()


def test_json_has_all_types_with_values_and_sources() -> None:
    shown = json.loads(run("types", "--json").stdout)
    assert list(shown) == list(CATALOG)
    assert shown["trn2.48xlarge"]["neuron_cores"] == 64
    assert shown["trn1.32xlarge"]["zones"]["us-east-2"] == ["use2-az3"]
    assert shown["trn1.32xlarge"]["sources"]["vcpus"]["date"] == "2026-10-03"


def test_region_limits_types_to_its_offerings() -> None:
    offered = list(json.loads(run("types", "--region", "sa-east-1", "--json").stdout))
    assert offered == [name for name, kind in CATALOG.items() if "sa-east-1" in kind.zones]
    assert {"trn2.3xlarge", "p5.4xlarge"} <= {*offered}
    shown = run("types", "--region", "us-west-2").stdout
    assert "us-west-2" in shown
    assert "us-east-1" not in shown

"""The chosen plans stand for all others only as long as each value occurs among them."""

from tests.stacks.variants import VARIANTS
from trainium_core import builtin_catalog


def test_every_type_occurs_in_every_region_that_offers_it() -> None:
    offered = {(entry.name, region) for entry in builtin_catalog().values() for region in entry.zones}
    assert {(settings["instance_type"], settings["region"]) for settings in VARIANTS.values()} == offered
    assert len(VARIANTS) == len(offered)

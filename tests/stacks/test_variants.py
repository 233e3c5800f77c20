"""The chosen plans stand for all others only as long as each value occurs among them."""

from tests.core.plans import OWN_EFS
from tests.stacks.variants import VARIANTS
from trainium_core import builtin_catalog
from trainium_core.plan.settings.network import CARD_INTERFACE_TYPES, EGRESS
from trainium_core.plan.values import CAPACITY


def values(setting: str) -> set[object]:
    return {settings.get(setting) for settings in VARIANTS.values()}


def test_every_type_occurs_in_every_region_that_offers_it() -> None:
    offered = {(entry.name, region) for entry in builtin_catalog().values() for region in entry.zones}
    assert {(settings["instance_type"], settings["region"]) for settings in VARIANTS.values()} == offered
    assert len(VARIANTS) == len(offered)


def test_every_capacity_occurs() -> None:
    assert values("capacity") == set(CAPACITY)


def test_every_way_out_occurs_and_so_do_networks_of_your_own() -> None:
    assert values("egress") == {*EGRESS, None}
    assert len(values("route_table_id")) == 2


def test_every_kind_of_cache_image_and_interface_occurs() -> None:
    assert values("cache_at_destroy") == {None, "retain"}
    assert values("cache_bucket") == {None, "my-cache"}
    assert values("ami") == {None, "ami-0123456789abcdef0"}
    assert values("secondary_interface_type") == set(CARD_INTERFACE_TYPES)


def test_every_kind_of_file_system_occurs() -> None:
    assert {type(value) for value in values("fsx_lustre")} == {type(None), int, str}
    assert values("efs") == {None, "new", OWN_EFS["efs"]}
    assert values("efs_security_group") == {None, OWN_EFS["efs_security_group"]}
    assert values("file_systems_at_destroy") == {None, "retain"}


def test_every_kind_of_end_occurs() -> None:
    assert len(values("ends")) == 3
    assert values("ends_action") == {None, "destroy"}
    assert values("budget_action") == {None, "stop"}
    assert len(values("budget_usd")) == 2


def test_clusters_with_and_without_a_host_that_compiles_ahead_occur() -> None:
    assert values("precompile_instance_type") == {None, "r7i.24xlarge"}
    hosts = [settings for settings in VARIANTS.values() if "precompile_instance_type" in settings]
    assert {settings.get("cache_bucket") for settings in hosts} == {None, "my-cache"}
    assert {"vpc_id" in settings for settings in hosts} == {True, False}
    assert {settings.get("budget_action") for settings in hosts} == {None, "stop"}

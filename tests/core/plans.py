"""Plans for tests: a valid plan to vary, and plans with all types, zones and kinds of capacity of the catalogue."""

from collections.abc import Container
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from trainium_core.catalog.catalog import builtin_catalog
from trainium_core.plan import Plan
from trainium_core.plan.node_checks import NODE_CHECKS
from trainium_core.plan.settings.network import CARD_INTERFACE_TYPES
from trainium_core.problems import PlanError, Problem

RESERVATION = "cr-0123456789abcdef0"
GOOD: dict[str, Any] = {"instance_type": "trn1.32xlarge", "region": "us-west-2"}
EXISTING_VPC: dict[str, Any] = {"vpc_id": "vpc-0123456789abcdef0", "subnet_id": "subnet-0123456789abcdef0"}
EXISTING_LUSTRE: dict[str, Any] = {
    "fsx_lustre": "fs-0123456789abcdef0",
    "fsx_lustre_mount_name": "abcdefgh",
    "fsx_lustre_security_group": "sg-0123456789abcdef0",
}
EXISTING_EFS: dict[str, Any] = {"efs": "fs-0fedcba9876543210", "efs_security_group": "sg-0fedcba9876543210"}

SELLABLE = [
    (entry.name, region, zone, capacity)
    for entry in builtin_catalog().values()
    for region, zones in entry.zones.items()
    for zone in zones
    for capacity in (*entry.usage_classes, "reservation")
]

cluster_names = st.from_regex(r"[a-z][a-z0-9]{2,9}(-[a-z0-9]{1,9}){0,2}", fullmatch=True)
"""Names that clusters of every engine may have."""


def from_settings(**settings: Any) -> Plan:
    """The plan of GOOD and other settings, as cdk.json or `-c` contains them."""
    return Plan.from_settings({**GOOD, **settings}, Path())


def problems_of(**settings: Any) -> list[Problem]:
    """The problems of GOOD with other settings."""
    try:
        from_settings(**settings)
    except PlanError as error:
        return list(error.problems)
    return []


def the_problem(**settings: Any) -> Problem:
    """The only problem of GOOD with other settings."""
    (problem,) = problems_of(**settings)
    return problem


@st.composite
def plans(draw: st.DrawFn, instance_types: Container[str] = builtin_catalog()) -> Plan:
    """Plans in a new VPC with every type, region, zone and kind of capacity that the catalogue allows."""
    name, region, zone, capacity = draw(st.sampled_from([offer for offer in SELLABLE if offer[0] in instance_types]))
    entry = builtin_catalog()[name]
    interface_type = draw(st.sampled_from(CARD_INTERFACE_TYPES))
    addresses = 1 if interface_type == "efa-only" else max(entry.efa_interfaces, 1)
    most = 1 if not entry.efa_interfaces else 64 if capacity == "capacity-block" else 32763 // addresses
    return Plan.of(
        instance_type=name,
        region=region,
        availability_zone_id=draw(st.sampled_from([zone, None])),
        capacity=capacity,
        reservation_id=RESERVATION if capacity in ("capacity-block", "reservation") else None,
        nodes=draw(st.integers(1, most)),
        secondary_interface_type=interface_type,
        logical_neuroncore_config=draw(st.sampled_from([None, *entry.logical_neuroncore_configs])),
        suppress_checks=tuple(draw(st.lists(st.sampled_from(list(NODE_CHECKS)), unique=True, max_size=3))),
        internode_ssh=draw(st.booleans()),
        fsx_lustre=draw(st.sampled_from([None, 1200, 4800])),
        efs=draw(st.sampled_from([None, "new"])),
    )

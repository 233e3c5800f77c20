"""Plans of every instance type, region and purchase option of the catalogue, with many other settings."""

from typing import Any

from hypothesis import strategies as st

from tests.constructs.synth import EXISTING_NETWORK
from trainium_core import Plan, builtin_catalog
from trainium_core.plan.settings.network import CARD_INTERFACE_TYPES, EGRESS
from trainium_core.setting_schema.setting import AT_DESTROY

RESERVATION = "cr-0123456789abcdef0"

OFFERED = [
    (entry.name, region, capacity)
    for entry in builtin_catalog().values()
    for region in entry.zones
    for capacity in (*entry.usage_classes, "reservation")
]
"""Valid combinations of instance type, region and capacity."""

_WHERE: list[dict[str, Any]] = [*({"egress": egress} for egress in (None, *EGRESS)), dict(EXISTING_NETWORK)]


def reserved(capacity: str) -> dict[str, str]:
    """The settings that a capacity requires."""
    return {"reservation_id": RESERVATION} if capacity in ("capacity-block", "reservation") else {}


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Plans of up to 64 nodes, the largest Capacity Block, with other settings drawn independently."""
    instance_type, region, capacity = draw(st.sampled_from(OFFERED))
    entry = builtin_catalog()[instance_type]
    return Plan.of(
        instance_type=instance_type,
        region=region,
        nodes=draw(st.integers(1, 64)) if entry.efa_interfaces else 1,
        capacity=capacity,
        **reserved(capacity),
        **draw(st.sampled_from(_WHERE)),
        availability_zone_id=draw(st.sampled_from([None, *entry.zones[region]])),
        ami=draw(st.sampled_from(["ami-0123456789abcdef0", "/aws/service/ami"])),
        secondary_interface_type=draw(st.sampled_from(CARD_INTERFACE_TYPES)),
        logical_neuroncore_config=draw(st.sampled_from([None, *entry.logical_neuroncore_configs])),
        fsx_lustre=draw(st.sampled_from([None, 1200])),
        efs=draw(st.sampled_from([None, "new"])),
        **draw(st.sampled_from([{}, {"ends": "5d", "ends_action": "destroy"}, {"ends": "40h"}])),
        **draw(st.sampled_from([{"cache_bucket": "my-cache"}, *({"cache_at_destroy": at} for at in AT_DESTROY)])),
    )

"""Representative plans for checks that would take minutes with every plan.

Each Trainium instance type in each of its regions, and each GPU type in one, with the values of other settings in turn.
"""

from collections.abc import Iterator
from itertools import cycle
from typing import Any

from tests.constructs.plans import reserved
from tests.constructs.synth import EXISTING_NETWORK
from tests.core.plans import EXISTING_EFS, EXISTING_LUSTRE
from trainium_core import builtin_catalog
from trainium_core.facts import facts
from trainium_core.plan.settings.network import CARD_INTERFACE_TYPES, EGRESS
from trainium_core.plan.values import CAPACITY

_OWN_SUBNET_THAT_REACHES_S3 = {key: value for key, value in EXISTING_NETWORK.items() if key != "route_table_id"}

_WHERE: list[dict[str, Any]] = [
    *({"egress": egress} for egress in EGRESS),
    dict(EXISTING_NETWORK),
    _OWN_SUBNET_THAT_REACHES_S3,
]
_CACHE: list[dict[str, Any]] = [{}, {"cache_at_destroy": "retain"}, {"cache_bucket": "my-cache"}, {}]
_NEW_FILE_SYSTEMS: list[dict[str, Any]] = [{}, {"fsx_lustre": 1200}, {"efs": "new"}, {"fsx_lustre": 2400, "efs": "new"}]
_OWN_FILE_SYSTEMS: list[dict[str, Any]] = [
    {"fsx_lustre": 1200, "efs": "new", "file_systems_at_destroy": "retain"},
    {**EXISTING_LUSTRE, **EXISTING_EFS},
    {"efs": EXISTING_EFS["efs"]},
]
_IMAGE: list[dict[str, Any]] = [{}, {"ami": "ami-0123456789abcdef0", "root_device_name": "/dev/xvda"}]

_PILOT: list[dict[str, Any]] = [
    {},
    {"ends": "5d", "ends_action": "destroy"},
    {"budget_usd": 500, "job_notices": True, "notify_email": "someone@example.com"},
    {"ends": "2026-12-01T18:00 Europe/Berlin", "budget_usd": 500, "budget_action": "stop"},
]


def _variants() -> Iterator[dict[str, Any]]:
    where, cache, image, pilots = cycle(_WHERE), cycle(_CACHE), cycle(_IMAGE), cycle(_PILOT)
    new_file_systems, own_file_systems = cycle(_NEW_FILE_SYSTEMS), cycle(_OWN_FILE_SYSTEMS)
    interfaces, capacities = cycle(CARD_INTERFACE_TYPES), cycle(CAPACITY)
    for entry in builtin_catalog().values():
        for region in list(entry.zones)[: 1 if entry.is_gpu else None]:
            offered = (*entry.usage_classes, "reservation")
            capacity = next(capacity for capacity in capacities if capacity in offered)
            place = next(where)
            without_budgets = region in facts()["budgets"]["regions_without_cloudformation_type"]
            pilot = next(settings for settings in pilots if not without_budgets or "budget_usd" not in settings)
            yield {
                "instance_type": entry.name,
                "region": region,
                "nodes": 2 if entry.efa_interfaces else 1,
                "capacity": capacity,
                **reserved(capacity),
                "secondary_interface_type": next(interfaces),
                **place,
                **next(own_file_systems if "vpc_id" in place else new_file_systems),
                **next(cache),
                **({} if entry.is_gpu else next(image)),
                **pilot,
            }


VARIANTS: dict[str, dict[str, Any]] = {
    "-".join([settings["instance_type"], settings["region"], settings["capacity"]]): settings
    for settings in _variants()
}
"""Settings by a name for display."""


def _covering() -> Iterator[str]:
    values = {name: _values_for_linters(settings) for name, settings in VARIANTS.items()}
    uncovered = set[tuple[str, str]]().union(*values.values())
    while uncovered:
        best = max(values, key=lambda name: len(values[name] & uncovered))
        yield best
        uncovered -= values[best]


def _values_for_linters(settings: dict[str, Any]) -> set[tuple[str, str]]:
    """The setting values that matter to linters.

    Instance type and region are left out, because they only change values in the template. A type counts only by
    whether it has GPUs, and whether it has one or several network interfaces, because these change the resources.
    """
    kind = builtin_catalog()[settings["instance_type"]]
    interfaces = min(kind.efa_interfaces, 2)
    varied = {key: value for key, value in settings.items() if key not in ("instance_type", "region")}
    return {(key, str(value)) for key, value in {**varied, "gpu": kind.is_gpu, "interfaces": interfaces}.items()}


COVERING = tuple(_covering())
"""Names of a few variants that together have all setting values of the variants, for slow checks."""

"""Plans and locations that tests of the user data share."""

from typing import Any

from trainium_core.catalog.catalog import builtin_catalog
from trainium_core.plan import Plan
from trainium_userdata.locations import NodeLocations

LOCATIONS = NodeLocations(
    region="us-west-2",
    cache_url="s3://cluster-cache/neuron-compile-cache",
    report_url="s3://cluster-records/nodes",
    node_script_url="s3://cluster-assets/node-script.sh",
    lustre_dns="fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com",
    lustre_mount_name="abcdefgh",
    efs_dns="fs-0123456789abcdef0.efs.us-west-2.amazonaws.com",
)


def plan_for(instance_type: str, **settings: Any) -> Plan:
    region = next(iter(builtin_catalog()[instance_type].zones))
    return Plan.of(instance_type=instance_type, region=region, **settings)


def every_plan(**settings: Any) -> list[Plan]:
    """Each type with each market, each LNC and each kind of further network interface."""
    return [
        plan_for(
            name,
            capacity=capacity,
            reservation_id="cr-0123456789abcdef0" if capacity in ("capacity-block", "reservation") else None,
            logical_neuroncore_config=lnc,
            secondary_interface_type=interface,
            **settings,
        )
        for name, known in builtin_catalog().items()
        if not (known.is_gpu and settings.get("neuron_software") == "install")
        for capacity in (*known.usage_classes, "reservation")
        for lnc in known.logical_neuroncore_configs or (None,)
        for interface in (("efa", "efa-only") if known.efa_interfaces > 1 else ("efa",))
    ]


def plan_id(plan: Plan) -> str:
    return f"{plan.instance_type}-{plan.capacity}-lnc{plan.lnc}-{plan.network.secondary_interface_type}"

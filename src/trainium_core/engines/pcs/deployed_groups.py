"""The nodes that a template defines as a compute node group of AWS PCS."""

from collections.abc import Iterator, Mapping
from typing import Any

from trainium_core.engines.pcs.slurm_settings import NODE_GROUP
from trainium_core.nodes.fleet import DeployedFleet, launch_data, launch_reservation, resolved_physical_id
from trainium_core.stacks.cluster_resources import TemplateResources, clusters_in

RESOURCE_TYPE = "AWS::PCS::ComputeNodeGroup"
_KEY = "pcs"
_MARKETS = {"SPOT": "spot", "CAPACITY_BLOCK": "capacity-block"}


def fleets_in(resources: TemplateResources, physical_ids: Mapping[str, str]) -> Iterator[DeployedFleet]:
    """The compute node groups of nodes (NODE_GROUP) in a template that have a cluster tag.

    Args:
        resources: The resources of the template.
        physical_ids: Physical IDs of existing resources, by logical ID.
    """
    for name, made in resources.items():
        group = made.get("Properties", {})
        clusters = clusters_in({name: made}) if made["Type"] == RESOURCE_TYPE else ()
        if not clusters or group.get("Name") != NODE_GROUP:
            continue
        guard = _guard_environment(resources, name)
        launched = launch_data(resources, group.get("CustomLaunchTemplate", {}).get("TemplateId"))
        yield DeployedFleet(
            cluster=clusters[0],
            group=None,
            records_bucket=resolved_physical_id(guard.get("RECORDS_BUCKET"), physical_ids),
            instance_type=next((config["InstanceType"] for config in group.get("InstanceConfigs", ())), None),
            nodes=int(group["ScalingConfiguration"]["MaxInstanceCount"]),
            engine=_KEY,
            service_group=physical_ids.get(name),
            market=_MARKETS.get(group.get("PurchaseOption", ""), "on-demand"),
            reservation_id=launch_reservation(launched),
            replacements=int(guard.get("FAILURES", 0)),
        )


def _guard_environment(resources: TemplateResources, group: str) -> Mapping[str, Any]:
    """The environment of the guard, the function that stops the launches of a failing group; empty without one."""
    functions = (made.get("Properties", {}) for made in resources.values() if made["Type"] == "AWS::Lambda::Function")
    for function in functions:
        variables: Mapping[str, Any] = function.get("Environment", {}).get("Variables", {})
        if variables.get("GROUP_ID") == {"Fn::GetAtt": [group, "Id"]}:
            return variables
    return {}

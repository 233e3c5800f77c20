"""The nodes that a stack's template defines, and where they are found."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from trainium_core.stacks.cluster_resources import TemplateResources, clusters_in
from trainium_runtime.naming import FLEET_READINESS

GROUP = "AWS::AutoScaling::AutoScalingGroup"


@dataclass(frozen=True, kw_only=True)
class DeployedFleet:
    """The nodes of one cluster in a stack.

    Attributes:
        cluster: Name of the cluster.
        group: Name of the Auto Scaling group; None until CloudFormation has created it, or if a service runs the nodes.
        records_bucket: Bucket of the node records; None until CloudFormation has created it.
        instance_type: None if the template does not show the type.
        nodes: Maximum number of nodes.
        engine: Key of the engine that runs the nodes.
        service_group: Physical ID of the group, if a service runs the nodes; None until CloudFormation has created it.
        market: on-demand, spot or capacity-block.
        reservation_id: Reservation or Capacity Block in which the nodes are launched, if any.
        replacements: Maximum number of failed nodes that are replaced in any 24 hours.
        ends: ISO 8601 time with offset, or hours after the creation of the stack, such as 8h; None without an end.
        idle_minutes: Minutes without use after which the nodes are terminated; None if unused nodes keep running.
    """

    cluster: str
    group: str | None
    records_bucket: str | None
    instance_type: str | None
    nodes: int
    engine: str = "cluster"
    service_group: str | None = None
    market: str = "on-demand"
    reservation_id: str | None = None
    replacements: int = 0
    ends: str | None = None
    idle_minutes: str | None = None


def fleets_in(resources: TemplateResources, physical_ids: Mapping[str, str]) -> tuple[DeployedFleet, ...]:
    """The fleets in a template whose nodes are in Auto Scaling groups.

    Args:
        resources: The resources of the template.
        physical_ids: Physical IDs of the existing resources, by logical ID.
    """
    return tuple(_fleets(resources, physical_ids))


def _fleets(resources: TemplateResources, physical_ids: Mapping[str, str]) -> Iterator[DeployedFleet]:
    for name, resource in resources.items():
        clusters = clusters_in({name: resource}) if resource["Type"] == GROUP else ()
        if not clusters:
            continue
        group = _object(resource.get("Properties"))
        settings = _controller_settings(resources, name)
        launched = launch_data(resources, _object(group.get("LaunchTemplate")).get("LaunchTemplateId"))
        yield DeployedFleet(
            cluster=clusters[0],
            group=physical_ids.get(name),
            records_bucket=resolved_physical_id(settings.get("RECORDS_BUCKET"), physical_ids),
            instance_type=_text(launched.get("InstanceType")),
            nodes=_number(group.get("MaxSize")),
            market=_text(_object(launched.get("InstanceMarketOptions")).get("MarketType")) or "on-demand",
            reservation_id=launch_reservation(launched),
            replacements=_number(settings.get("REPLACEMENTS")),
            ends=_text(settings.get("ENDS")),
            idle_minutes=_text(settings.get("IDLE_MINUTES")),
        )


def _controller_settings(resources: TemplateResources, group: str) -> Mapping[str, Any]:
    found = [
        _object(resource.get("Properties")) for resource in resources.values() if resource["Type"] == FLEET_READINESS
    ]
    settings = (_object(properties.get("Settings")) for properties in found)
    return next((each for each in settings if each.get("GROUP") == {"Ref": group}), _object(None))


def launch_data(resources: TemplateResources, template_id: Any) -> Mapping[str, Any]:
    """The data of the launch template to which a property refers; empty if the stack does not contain the template."""
    template = _object(resources.get(str(_object(template_id).get("Ref"))))
    return _object(_object(template.get("Properties")).get("LaunchTemplateData"))


def launch_reservation(launched: Mapping[str, Any]) -> str | None:
    """The reservation or Capacity Block that a launch template names, if any."""
    target = _object(_object(launched.get("CapacityReservationSpecification")).get("CapacityReservationTarget"))
    return _text(target.get("CapacityReservationId"))


def resolved_physical_id(value: Any, physical_ids: Mapping[str, str]) -> str | None:
    """The physical ID in a property, or of the resource to which it refers with Ref; None if unknown."""
    match value:
        case {"Ref": str(name)}:
            return physical_ids.get(name)
        case str():
            return value
        case _:
            return None


def _object(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Any) -> int:
    return int(value) if isinstance(value, int | str) and str(value).isdigit() else 0

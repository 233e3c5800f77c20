"""The plan that the parameters of a construct come to: what checks them, and what nodes are told."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from aws_cdk import Duration, Size, Stack, Token
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from trainium_cdk.arguments import check_known, check_list, check_number, check_setting, check_type
from trainium_cdk.capacity import Capacity
from trainium_cdk.props_error import errors_of_parameters, parameter_of, refuse
from trainium_core.catalog.catalog import Catalog, builtin_catalog
from trainium_core.plan import Plan
from trainium_core.plan.network_layout import network_interfaces
from trainium_core.plan.values import PlanValues

KNOWN_LATER = "00000000000000000"
"""In the place of an id that only CloudFormation may know, in a plan whose ids are not used."""


def node_settings(
    construct: Construct,
    *,
    instance_type: ec2.InstanceType,
    nodes: int = PlanValues.nodes,
    cluster_name: str | None = None,
    capacity: Capacity | None = None,
    catalog: Catalog | None = None,
) -> dict[str, Any]:
    """The settings of a plan that say which instances there are, by their keys. Raises PropsError."""
    name = known_type(construct, instance_type)
    if cast(object, nodes) is None:
        check_number(construct, "nodes", nodes, smallest=1, why="it is compared with quota, subnet and capacity")
    check_known(construct, "nodes", nodes, why="it is compared with quota, subnet and capacity")
    if catalog is not None:
        check_type(construct, "catalog", catalog, Catalog, what="a Catalog, such as load_catalog(Path('types.toml'))")
    capacity = Capacity.on_demand() if capacity is None else capacity
    check_type(construct, "capacity", capacity, Capacity, what="a Capacity, such as Capacity.on_demand()")
    check_known(construct, "capacity", capacity.reservation_id or "", why="what a reservation holds is bought before")
    settings: dict[str, Any] = {
        **_where(construct, name, catalog),
        "nodes": nodes,
        "capacity": capacity.kind,
        "reservation_id": capacity.reservation_id,
    }
    if cluster_name is not None:
        check_known(construct, "cluster_name", cluster_name, why="tags and names hold it, and no two fleets share one")
        settings["cluster_name"] = cluster_name
    if catalog is not None:
        settings["catalog"] = catalog
    return settings


def known_type(construct: Construct, instance_type: ec2.InstanceType) -> str:
    """The name of an instance type. Raises PropsError for what is none, and for a CDK token."""
    what = "an ec2.InstanceType, such as ec2.InstanceType('trn1.32xlarge')"
    check_type(construct, "instance_type", instance_type, ec2.InstanceType, what=what)
    name = instance_type.to_string()
    check_known(construct, "instance_type", name, why="it decides about network cards and checks of the nodes")
    return name


def known_name(construct: Construct, cluster_name: str) -> str:
    """A cluster's name. Raises PropsError for what has no form of one, and for a CDK token."""
    check_known(construct, "cluster_name", cluster_name, why="tags and names hold it, and no two fleets share one")
    check_setting(construct, "cluster_name", cluster_name, setting="cluster_name")
    return cluster_name


def region_settings(construct: Construct, *, needed: bool) -> dict[str, Any]:
    """The settings of a plan for what runs on any type of the stack's region, by their keys.

    needed: whether the region must be known. Raises PropsError where it is not.
    """
    region, known = Stack.of(construct).region, builtin_catalog()
    if needed and Token.is_unresolved(region):
        fix = "give the stack env=Environment(region=...), or an image of the region"
        allowed = "a region that is known at synthesis: AWS's container images differ between regions"
        raise refuse(construct, "the region of the stack", None, allowed=allowed, fix=fix)
    offered = () if Token.is_unresolved(region) else known.offered_in(region)
    return _where(construct, next(iter(offered), next(iter(known))), None)


def plan_of(construct: Construct, settings: Mapping[str, Any], given: Mapping[str, object] | None = None) -> Plan:
    """The plan of settings by their keys. Raises PropsError with all that is wrong, by the names of parameters.

    given: what was given for parameters, where a setting holds it in another form.
    """
    left_out = {key: value for key, value in settings.items() if value is not None}
    with errors_of_parameters(construct, parameter_of, given):
        return Plan.of(**left_out)


def names(construct: Construct, parameter: str, value: Sequence[str], *, what: str) -> tuple[str, ...]:
    """A list of texts as the plan holds it. Raises PropsError for what is no list. what: of what."""
    check_list(construct, parameter, value, what=what)
    return tuple(value)


def check_card_interfaces(construct: Construct, given: str | None, plan: Plan) -> None:
    """Raise PropsError where there is no network card after the first for `secondary_interface_type`."""
    if given is not None and len(network_interfaces(plan)) == 1:
        allowed = f"nothing on {plan.instance_type}, which has one network card"
        raise refuse(construct, "secondary_interface_type", given, allowed=allowed, fix="leave it out")


def minutes(construct: Construct, parameter: str, value: Duration | None) -> int | None:
    """A duration in minutes, None for none. Raises PropsError unless it is known and of whole minutes."""
    return (
        None if value is None else _to_int(construct, parameter, _seconds(construct, parameter, value) / 60, "minutes")
    )


def hours(construct: Construct, parameter: str, value: Duration | None) -> int | None:
    """A duration in hours, None for none. Raises PropsError unless it is known and of whole hours."""
    return (
        None if value is None else _to_int(construct, parameter, _seconds(construct, parameter, value) / 3600, "hours")
    )


def gibibytes(construct: Construct, parameter: str, value: Size | None) -> int | None:
    """A size in GiB, None for none. Raises PropsError unless it is known and whole."""
    if value is None:
        return None
    check_type(construct, parameter, value, Size, what="a Size, such as Size.gibibytes(500)")
    if value.is_unresolved():
        raise refuse(construct, parameter, value, allowed="a size that is known at synthesis", fix="give a number")
    return _to_int(construct, parameter, value.to_bytes() / 2**30, "GiB")


def end_setting(construct: Construct, value: Duration | datetime | None) -> str | None:
    """The end of a pilot as its setting is written. Raises PropsError for a time without its time zone."""
    if value is None:
        return None
    if isinstance(value, datetime):
        if value.tzinfo is None:
            allowed = "a Duration, or a datetime with its time zone"
            raise refuse(construct, "ends", value, allowed=allowed, fix="give tzinfo, such as timezone.utc")
        return value.isoformat(timespec="seconds")
    return f"{hours(construct, 'ends', value)}h"


def _where(construct: Construct, instance_type: str, catalog: Catalog | None) -> dict[str, Any]:
    """Type and region; where the stack is for any region, one that offers the type stands for it."""
    region = Stack.of(construct).region
    if Token.is_unresolved(region):
        known = catalog or builtin_catalog()
        offering = known[instance_type].zones if instance_type in known else ()
        region = next(iter(offering), known.regions[0])
    return {"instance_type": instance_type, "region": region}


def _seconds(construct: Construct, parameter: str, value: Any) -> float:
    check_type(construct, parameter, value, Duration, what="a Duration, such as Duration.hours(2)")
    if value.is_unresolved():
        raise refuse(construct, parameter, value, allowed="a duration that is known at synthesis", fix="give a number")
    return value.to_milliseconds() / 1000


def _to_int(construct: Construct, parameter: str, value: float, unit: str) -> int:
    if value != int(value):
        raise refuse(construct, parameter, value, allowed=f"whole {unit}", fix=f"round it to {unit}")
    return int(value)

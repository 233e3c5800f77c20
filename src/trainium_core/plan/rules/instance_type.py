"""What must hold between type, region and zone, whatever the engine."""

import re
from collections.abc import Iterator

from trainium_core.catalog.nearest_region import nearest_region
from trainium_core.plan.rules.rule import Rule, rule_of
from trainium_core.plan.values import PlanValues
from trainium_core.problems import Problem, nearest

INSTANCE_TYPE_RULES: list[Rule] = []
rule = rule_of(INSTANCE_TYPE_RULES)


@rule("instance_type", "catalog")
def type_is_in_the_catalogue(plan: PlanValues) -> Iterator[Problem]:
    if plan.instance_type not in plan.catalog:
        # Sizes alone resemble each other: p5.48xlarge does not mean trn2.48xlarge.
        words = re.split(r"[^a-z0-9]+", plan.instance_type.casefold())
        resembling = [name for name in plan.catalog if any(nearest(word, (name.split(".")[0],)) for word in words)]
        close = nearest(plan.instance_type, resembling)
        yield Problem(
            key="instance_type",
            got=plan.instance_type,
            allowed=", ".join(plan.catalog),
            nearest=close,
            fix=(f"write {close}" if close else "choose a type with Trainium devices")
            + "; a type that AWS has announced since goes into a file of your own: trn:catalog",
        )


@rule("region", "catalog")
def region_offers_trainium(plan: PlanValues) -> Iterator[Problem]:
    regions = plan.catalog.regions
    if plan.region not in regions:
        close = nearest_region(plan.region, regions)
        fix = f"choose {close}" if close else "choose one of the allowed regions"
        yield Problem(key="region", got=plan.region, allowed=", ".join(regions), nearest=close, fix=fix)


@rule("instance_type", "region", "catalog")
def region_offers_the_type(plan: PlanValues) -> Iterator[Problem]:
    if plan.region not in plan.type.zones:
        elsewhere = ", ".join(plan.type.zones)
        yield Problem(
            key="region",
            got=plan.region,
            allowed=f"a region that offers {plan.instance_type}: {elsewhere}",
            fix="choose one of these, or a type that this region offers: "
            + ", ".join(plan.catalog.offered_in(plan.region)),
        )


@rule("instance_type", "region", "catalog", "availability_zone_id")
def zone_offers_the_type(plan: PlanValues) -> Iterator[Problem]:
    zone, offering = plan.availability_zone_id, plan.type.zones[plan.region]
    if zone is not None and zone not in offering:
        elsewhere = next((region for region, zones in plan.type.zones.items() if zone in zones), None)
        yield Problem(
            key="availability_zone_id",
            got=zone,
            allowed=f"a zone of {plan.region} that offers {plan.instance_type}: {', '.join(offering)}",
            nearest=nearest(zone, offering),
            fix=f"{zone} is in {elsewhere}: set trn:region to it, or choose a zone of {plan.region}"
            if elsewhere
            else f"choose {' or '.join(offering)}, or leave the setting out",
        )


@rule("instance_type", "catalog", "logical_neuroncore_config")
def logical_core_config_is_one_of_the_types(plan: PlanValues) -> Iterator[Problem]:
    allowed = plan.type.logical_neuroncore_configs or (1,)
    if plan.logical_neuroncore_config is not None and plan.logical_neuroncore_config not in allowed:
        yield Problem(
            key="logical_neuroncore_config",
            got=plan.logical_neuroncore_config,
            allowed=f"{' or '.join(map(str, allowed))} on {plan.instance_type}",
            fix="choose one of these, or leave the setting out",
        )

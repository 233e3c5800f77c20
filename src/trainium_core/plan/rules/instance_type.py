"""Rules between instance type, region, zone and logical NeuronCores, for every engine."""

import re
from collections.abc import Iterator

from trainium_core.catalog.catalog import Catalog, nearest_region
from trainium_core.catalog.instance_type import InstanceType
from trainium_core.plan.rules.rule import Rule, rule_decorator
from trainium_core.plan.values import PlanValues
from trainium_core.problems import Problem, nearest

INSTANCE_TYPE_RULES: list[Rule] = []
rule = rule_decorator(INSTANCE_TYPE_RULES)


def known_type(name: str, catalog: Catalog, *, field: str, catalog_field: str) -> Iterator[Problem]:
    """The instance type must be in the catalogue.

    Args:
        name: The name of the type.
        catalog: The catalogue.
        field: Name of the field in the problem.
        catalog_field: Setting or parameter for the user's catalogue.
    """
    if name in catalog:
        return
    # Only types with a similar family are suggested: p5.48xlarge and trn2.48xlarge have only the size in common.
    words = re.split(r"[^a-z0-9]+", name.casefold())
    resembling = [known for known in catalog if any(nearest(word, (known.split(".")[0],)) for word in words)]
    close = nearest(name, resembling)
    yield Problem(
        key=field,
        got=name,
        allowed=", ".join(catalog),
        nearest=close,
        fix=(f"write {close}" if close else "choose one of these")
        + f"; for a newer type, name a catalogue file in {catalog_field}",
    )


def region_in_catalog(region: str, catalog: Catalog, *, field: str) -> Iterator[Problem]:
    """The region must offer a type of the catalogue."""
    if region not in catalog.regions:
        close = nearest_region(region, catalog.regions)
        fix = f"choose {close}" if close else "choose one of the allowed regions"
        yield Problem(key=field, got=region, allowed=", ".join(catalog.regions), nearest=close, fix=fix)


def region_with_type(kind: InstanceType, region: str, catalog: Catalog, *, field: str) -> Iterator[Problem]:
    """The region must offer the type."""
    if region not in kind.zones:
        yield Problem(
            key=field,
            got=region,
            allowed=f"a region that offers {kind.name}: {', '.join(kind.zones)}",
            fix=f"choose one of these, or a type that this region offers: {', '.join(catalog.offered_in(region))}",
        )


def core_config(config: int | None, kind: InstanceType, *, field: str) -> Iterator[Problem]:
    """The type must support this number of physical NeuronCores per logical NeuronCore."""
    allowed = kind.logical_neuroncore_configs or (1,)
    if config is not None and kind.is_gpu:
        yield Problem(key=field, got=config, allowed=f"nothing on {kind.name}, which has GPUs", fix="remove it")
    elif config is not None and config not in allowed:
        yield Problem(
            key=field,
            got=config,
            allowed=f"{' or '.join(map(str, allowed))} on {kind.name}",
            fix="choose one of these, or remove it",
        )


@rule("instance_type", "catalog")
def type_is_known(plan: PlanValues) -> Iterator[Problem]:
    yield from known_type(plan.instance_type, plan.catalog, field="instance_type", catalog_field="trn:catalog")


@rule("region", "catalog")
def region_offers_some_type(plan: PlanValues) -> Iterator[Problem]:
    yield from region_in_catalog(plan.region, plan.catalog, field="region")


@rule("instance_type", "region", "catalog")
def region_offers_type(plan: PlanValues) -> Iterator[Problem]:
    yield from region_with_type(plan.type, plan.region, plan.catalog, field="region")


@rule("instance_type", "region", "catalog", "availability_zone_id")
def zone_offers_type(plan: PlanValues) -> Iterator[Problem]:
    zone, offering = plan.availability_zone_id, plan.type.zones[plan.region]
    if zone is not None and zone not in offering:
        elsewhere = next((region for region, zones in plan.type.zones.items() if zone in zones), None)
        yield Problem(
            key="availability_zone_id",
            got=zone,
            allowed=f"a zone of {plan.region} that offers {plan.instance_type}: {', '.join(offering)}",
            nearest=nearest(zone, offering),
            fix=f"{zone} is in {elsewhere}: set trn:region to {elsewhere}, or choose a zone of {plan.region}"
            if elsewhere
            else f"choose {' or '.join(offering)}, or remove the setting",
        )


@rule("instance_type", "catalog", "logical_neuroncore_config")
def logical_core_config_fits_type(plan: PlanValues) -> Iterator[Problem]:
    yield from core_config(plan.logical_neuroncore_config, plan.type, field="logical_neuroncore_config")

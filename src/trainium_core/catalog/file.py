"""Reads and validates a catalogue file. The built-in catalogue and users' files have the same form."""

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, cast

from trainium_core.catalog.instance_type import InstanceType

ZONE_ID = r"[a-z]+[0-9]-az[0-9]"


class CatalogError(ValueError):
    """A catalogue file is invalid. The message names the file and, if there is one, the type and the value."""


@dataclass(frozen=True, kw_only=True)
class Fact:
    """A value and the key of its source."""

    value: Any
    source: str


@dataclass(frozen=True, kw_only=True)
class CatalogFile:
    """The content of a file.

    Attributes:
        where: The name of the file.
        types: The instance types.
        facts: Each value with the key of its source, by instance type and name of the value.
        sources: Title and date of each source, by key.
    """

    where: str
    types: tuple[InstanceType, ...]
    facts: Mapping[str, Mapping[str, Fact]]
    sources: Mapping[str, Mapping[str, Any]]


def parse_catalog(text: str, where: str) -> CatalogFile:
    """Parse a catalogue.

    Args:
        text: The content of the file.
        where: The name of the file, for messages.

    Returns:
        The content.

    Raises:
        CatalogError: A value, a source or the form is wrong.
    """
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise CatalogError(f"{where}: not TOML: {error}") from error
    sources = _sources(_table(document.get("sources", {}), f"{where}: sources"), where)
    rows = _table(document.get("types", {}), f"{where}: types")
    if not rows:
        raise CatalogError(f'{where}: has no instance types; write each as a table [types."NAME"]')
    facts = {name: _facts(_table(row, f"{where}: {name}"), sources, f"{where}: {name}") for name, row in rows.items()}
    types = tuple(_instance_type(name, facts[name], f"{where}: {name}") for name in rows)
    return CatalogFile(where=where, types=types, facts=facts, sources=sources)


def _is_whole_number(value: Any) -> bool:
    return type(value) is int and value >= 0


_FORMS: Mapping[Any, tuple[str, Callable[[Any], bool]]] = {
    str: ("a string", lambda value: isinstance(value, str)),
    int: ("a whole number, 0 or more", _is_whole_number),
    float: (
        "a number, 0 or more",
        lambda value: _is_whole_number(value) or (isinstance(value, float) and 0 <= value < 1e9),
    ),
    tuple[int, ...]: (
        "a list of whole numbers, each 1 or more",
        lambda value: isinstance(value, list) and all(_is_whole_number(x) and x for x in cast(list[Any], value)),
    ),
    tuple[str, ...]: (
        "a list of strings",
        lambda value: isinstance(value, list) and all(isinstance(x, str) for x in cast(list[Any], value)),
    ),
}


def _table(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise CatalogError(f"{where}: is {value!r}, must be a table")
    return cast(Mapping[str, Any], value)


def _sources(sources: Mapping[str, Any], where: str) -> Mapping[str, Mapping[str, Any]]:
    for key, source in sources.items():
        if not {"title", "date"} <= set(_table(source, f"{where}: source {key!r}")):
            raise CatalogError(f"{where}: source {key!r} needs a title and a date")
    return sources


_OF_NEURON = ("neuron_devices", "neuron_cores_per_device", "logical_neuroncore_configs", "instances_per_ultraserver")
_OF_GPUS = ("gpus",)


def _facts(row: Mapping[str, Any], sources: Mapping[str, Any], where: str) -> dict[str, Fact]:
    of_others = _OF_NEURON if "gpus" in row else _OF_GPUS
    facts = {
        field.name: _fact(row.get(field.name), field.type, f"{where}: {field.name}")
        for field in fields(InstanceType)
        if field.name not in ("name", "zones", *of_others)
    }
    facts["zones"] = _zones(row.get("zones"), where)
    unknown = sorted(set(row) - set(facts))
    if unknown:
        raise CatalogError(f"{where}: unknown key {', '.join(unknown)}; known: {', '.join(facts)}")
    for key, fact in facts.items():
        if fact.source not in sources:
            known = ", ".join(sources) or "none"
            named = f"names the source {fact.source!r}" if fact.source else "names no source"
            raise CatalogError(f"{where}: {key} {named}; known: {known}")
    return facts


def _fact(entry: Any, form: Any, where: str) -> Fact:
    if entry is None:
        raise CatalogError(f'{where}: is missing; write it as {{ value = ..., source = "..." }}')
    if not isinstance(entry, dict) or not {"value", "source"} == set(cast(Mapping[str, Any], entry)):
        raise CatalogError(f'{where}: is {entry!r}, must be written as {{ value = ..., source = "..." }}')
    value: Any = cast(Mapping[str, Any], entry)["value"]
    wanted, fits = _FORMS[form]
    if not fits(value):
        raise CatalogError(f"{where}: is {value!r}, must be {wanted}")
    value = tuple(cast(list[Any], value)) if isinstance(value, list) else value
    return Fact(value=value, source=str(cast(Mapping[str, Any], entry)["source"]))


def _zones(entry: Any, where: str) -> Fact:
    if entry is None:
        raise CatalogError(f'{where}: zones: is missing; write it as a table [types."NAME".zones]')
    regions = dict(_table(entry, f"{where}: zones"))
    source = str(regions.pop("source", ""))
    for region, ids in regions.items():
        if not (_FORMS[tuple[str, ...]][1](ids) and ids and all(re.fullmatch(ZONE_ID, zone) for zone in ids)):
            raise CatalogError(f"{where}: zones: {region} is {ids!r}, must be a list of zone IDs, such as usw2-az4")
    return Fact(value={region: tuple(ids) for region, ids in regions.items()}, source=source)


def _instance_type(name: str, facts: Mapping[str, Fact], where: str) -> InstanceType:
    entry = InstanceType(name=name, **{key: fact.value for key, fact in facts.items()})
    if not entry.devices:
        raise CatalogError(f"{where}: has neither Neuron devices nor GPUs")
    if entry.efa_interfaces > entry.network_cards:
        raise CatalogError(
            f"{where}: has {entry.efa_interfaces} EFA interfaces, more than its {entry.network_cards} network cards"
        )
    for config in entry.logical_neuroncore_configs:
        if entry.neuron_cores_per_device % config:
            cores = entry.neuron_cores_per_device
            raise CatalogError(
                f"{where}: {cores} physical cores per device are not a multiple of {config} per logical core"
            )
    return entry

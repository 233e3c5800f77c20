"""The instance types a plan can name: facts from data/instance_types.toml, and what follows from them."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

DATA = files("trainium_core") / "data"


class CatalogError(ValueError):
    """A catalogue file that cannot be used; the message names the file, the type and the value."""


@dataclass(frozen=True, kw_only=True)
class Fact:
    """Where a value comes from."""

    value: Any
    source: str


@dataclass(frozen=True, kw_only=True)
class InstanceType:
    """One EC2 instance type with Neuron devices, as its sources state it.

    `device_memory_gib` and `neuron_cores_per_device` (physical cores) count one Neuron device; `network_gbps` is
    for the instance; `zones` maps a region to the ids of the Availability Zones that offer the type.
    `logical_neuroncore_configs` lists how many physical cores may form one logical core (empty: fixed at one).
    """

    name: str
    accelerator: str
    vcpus: int
    memory_gib: int
    neuron_devices: int
    neuron_cores_per_device: int
    logical_neuroncore_configs: tuple[int, ...]
    device_memory_gib: int
    network_cards: int
    network_interfaces_per_card: int
    efa_interfaces: int
    network_gbps: float
    nvme_disks: int
    nvme_disk_gb: int
    usage_classes: tuple[str, ...]
    instances_per_ultraserver: int
    zones: Mapping[str, tuple[str, ...]]

    @property
    def family(self) -> str:
        """The letters the name begins with: `trn` for trn1n.32xlarge. Quotas are per family."""
        return re.split(r"[^a-z]", self.name)[0]

    @property
    def default_logical_neuroncore_config(self) -> int:
        """Physical cores per logical core unless the plan says otherwise: the largest the type allows."""
        return max(self.logical_neuroncore_configs, default=1)

    @property
    def physical_neuron_cores(self) -> int:
        return self.neuron_devices * self.neuron_cores_per_device

    @property
    def total_device_memory_gib(self) -> int:
        return self.neuron_devices * self.device_memory_gib

    @property
    def zone_ids(self) -> tuple[str, ...]:
        return tuple(zone for zones in self.zones.values() for zone in zones)

    def logical_neuron_cores(self, logical_neuroncore_config: int) -> int:
        """What torchrun, JAX and `neuron-ls` see on one instance."""
        return self.physical_neuron_cores // logical_neuroncore_config


class Catalog(Mapping[str, InstanceType]):
    """Instance types by name. `facts` gives the source of a single value."""

    def __init__(self, types: Iterable[InstanceType], facts: Mapping[str, Mapping[str, Fact]]) -> None:
        self._types = {entry.name: entry for entry in types}
        self.facts = facts

    def __getitem__(self, name: str) -> InstanceType:
        return self._types[name]

    def __iter__(self):
        return iter(self._types)

    def __len__(self) -> int:
        return len(self._types)

    @property
    def regions(self) -> tuple[str, ...]:
        """Every region that offers at least one type of the catalogue, sorted."""
        return tuple(sorted({region for entry in self.values() for region in entry.zones}))

    def offered_in(self, region: str) -> tuple[str, ...]:
        return tuple(name for name, entry in self.items() if region in entry.zones)

    def overlaid_with(self, other: "Catalog") -> "Catalog":
        """This catalogue with the types of `other` added; where both know a name, `other` wins."""
        return Catalog({**self, **other}.values(), {**self.facts, **other.facts})


@cache
def builtin_catalog() -> Catalog:
    """The catalogue this package ships."""
    return _parse((DATA / "instance_types.toml").read_text(), "the built-in catalogue")


def load_catalog(overlay: Path | None = None) -> Catalog:
    """The built-in catalogue, with the types of a user's file laid over it.

    Raises CatalogError when the file is missing, is not TOML, or lacks a value, a source or a known type of value.
    """
    if overlay is None:
        return builtin_catalog()
    try:
        text = overlay.read_text()
    except OSError as error:
        raise CatalogError(f"{overlay}: cannot be read ({error.strerror})") from error
    return builtin_catalog().overlaid_with(_parse(text, str(overlay)))


_EXPECTED = {
    "str": ("text", lambda v: isinstance(v, str)),
    "int": ("a whole number, 0 or more", lambda v: isinstance(v, int) and not isinstance(v, bool) and v >= 0),
    "float": ("a number", lambda v: isinstance(v, int | float) and not isinstance(v, bool) and v >= 0),
    "tuple[int, ...]": ("a list of whole numbers", lambda v: isinstance(v, list) and all(type(x) is int for x in v)),
    "tuple[str, ...]": ("a list of texts", lambda v: isinstance(v, list) and all(isinstance(x, str) for x in v)),
}


def _parse(text: str, where: str) -> Catalog:
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CatalogError(f"{where}: not TOML: {error}") from error
    sources: Mapping[str, Any] = raw.get("sources", {})
    for key, source in sources.items():
        if not ({"title", "date"} <= set(source)):
            raise CatalogError(f"{where}: source {key!r} needs a title and a date")
    types: list[InstanceType] = []
    facts: dict[str, dict[str, Fact]] = {}
    for name, row in raw.get("types", {}).items():
        facts[name] = _facts(row, sources, f"{where}: {name}")
        values = {
            key: tuple(fact.value) if isinstance(fact.value, list) else fact.value for key, fact in facts[name].items()
        }
        types.append(InstanceType(name=name, **values))
    if not types:
        raise CatalogError(f'{where}: holds no instance type; a type is a table [types."NAME"]')
    return Catalog(types, facts)


def _facts(row: Mapping[str, Any], sources: Mapping[str, Any], where: str) -> dict[str, Fact]:
    facts: dict[str, Fact] = {}
    for field in fields(InstanceType):
        if field.name in ("name", "zones"):
            continue
        entry = row.get(field.name)
        if not isinstance(entry, dict) or "value" not in entry:
            raise CatalogError(f'{where}: needs {field.name} = {{ value = ..., source = "..." }}')
        fact = Fact(value=cast(Any, entry["value"]), source=str(cast(Any, entry.get("source", ""))))
        wanted, fits = _EXPECTED[_annotation(field.type)]
        if not fits(fact.value):
            raise CatalogError(f"{where}: {field.name} is {fact.value!r}, must be {wanted}")
        facts[field.name] = fact
    zones = dict(row.get("zones", {}))
    source = str(zones.pop("source", ""))
    facts["zones"] = Fact(value={region: tuple(ids) for region, ids in zones.items()}, source=source)
    unknown = sorted(set(row) - set(facts))
    if unknown:
        raise CatalogError(f"{where}: unknown value {', '.join(unknown)}; known: {', '.join(facts)}")
    for key, fact in facts.items():
        if fact.source not in sources:
            raise CatalogError(
                f"{where}: {key} names the source {fact.source!r}; known: {', '.join(sources) or 'none'}"
            )
    return facts


def _annotation(annotation: Any) -> str:
    return (
        annotation.__name__
        if isinstance(annotation, type) and not getattr(annotation, "__args__", None)
        else str(annotation)
    )

"""What a resource refers to: it must exist, or must not yet, and EC2's resources of one resource share a VPC."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from trainium_local.resources.generic import STORE
from trainium_local.rules.rule import FACTS, Place, Properties, listed, refusal

_ID = re.compile(rf"({'|'.join(FACTS['reference'])})-[0-9a-f]{{8,17}}")


def check(resource_type: str, properties: Properties, place: Place) -> None:
    """Raise Refused for a reference to nothing, or to things of different VPCs."""
    _check_existing(resource_type, properties, place)
    if re.search(FACTS["unchecked"]["types"], resource_type):
        return
    vpcs: dict[str, str] = {}
    for identifier, kind in _identifiers(properties):
        found = next((one for one in _known("ec2", FACTS["reference"][kind], place) if one[0] == identifier), None)
        if found is None and not STORE.holds(place.region, identifier):
            raise refusal(FACTS["reference"][kind], "Ec2", identifier)
        if found is not None and (kind in ("subnet", "sg", "rtb", "vpc") or resource_type == "AWS::EC2::Route"):
            vpcs[identifier] = str(_part(found, "id" if kind == "vpc" else "vpc.id" if kind == "igw" else "vpc_id"))
    if len(set(vpcs.values())) > 1 and not re.search(FACTS["unchecked"]["several_vpcs"], resource_type):
        fact = FACTS["different_networks"]
        raise refusal(fact.get(resource_type, fact["other"]), resource_type.split("::")[1], *vpcs)


def _check_existing(resource_type: str, properties: Properties, place: Place) -> None:
    for fact in FACTS["existing"]:
        taken = fact.get("taken", False)
        others = {path: properties.get(name) for path, name in fact.get("also", {}).items()} | fact.get("is", {})
        for value in listed(properties.get(fact["property"])) if resource_type == fact["type"] else ():
            wanted = {**others, fact["by"]: value}
            known = _known(fact["service"], fact, place)
            found = any(all(_same(_part(one, path), it) for path, it in wanted.items()) for one in known)
            if found == taken and (place.new or not taken) and not STORE.holds(place.region, str(value)) and value:
                raise refusal(fact, resource_type.split("::")[1], value)


def _known(service: str, fact: Mapping[str, Any], place: Place) -> list[tuple[Any, Any]]:
    """What there is in a table of moto's, with the keys; `within` one of tables, those of all of them."""
    among: Any = getattr(place.backend(service), fact["among"], {})
    among = among() if callable(among) else among
    if fact.get("within"):
        among = {key: one for inner in list(among.values()) for key, one in list(inner.items())}
    return list(among.items()) if isinstance(among, dict) else [(getattr(one, "id", None), one) for one in among]


def _part(item: tuple[Any, Any], path: str) -> Any:
    thing = item[1]
    for step in path.split(".") if path != "key" else ():
        thing = thing.get(step) if isinstance(thing, dict) else getattr(thing, step, None)
    return item[0] if path == "key" else thing() if callable(thing) else thing


def _same(actual: Any, wanted: Any) -> bool:
    return str(actual).lower() == str(wanted).lower() or (not isinstance(actual, str | None) and wanted in actual)


def _identifiers(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """The identifiers of EC2's resources with their kinds, where a property is named for the kind."""
    for key, item in value.items() if isinstance(value, Mapping) else ():
        if key not in ("Variables", "Environment", "Tags"):
            yield from _identifiers(item, str(key))
    for item in value if isinstance(value, list) else ():
        yield from _identifiers(item, name)
    match = _ID.fullmatch(value) if isinstance(value, str) else None
    if match and re.search(FACTS["reference"][match[1]]["of"], name):
        yield match[0], match[1]

"""References between resources: the referenced one must exist, or must be free, and EC2 resources must share a VPC."""

import re
from collections.abc import Container, Iterator, Mapping
from typing import Any

import jmespath

from trainium_local.rules.rule import FACTS, Properties, Target, listed, refusal

_ID = re.compile(rf"({'|'.join(FACTS['reference'])})-[0-9a-f]{{8,17}}")


def check(resource_type: str, properties: Properties, target: Target) -> None:
    """Raise Refused for references to resources that are missing, in use, or in different VPCs."""
    _check_existing(resource_type, properties, target)
    if re.search(FACTS["unchecked"]["types"], resource_type):
        return
    vpcs: dict[str, str] = {}
    for identifier, kind in identifiers(properties):
        resource = next(
            (entry for entry in table_entries("ec2", FACTS["reference"][kind], target) if entry[0] == identifier), None
        )
        if resource is None:
            raise refusal(FACTS["reference"][kind], "Ec2", identifier)
        if kind in ("subnet", "sg", "rtb", "vpc") or resource_type == "AWS::EC2::Route":
            vpcs[identifier] = str(part(resource, "id" if kind == "vpc" else "vpc.id" if kind == "igw" else "vpc_id"))
    if len(set(vpcs.values())) > 1 and not re.search(FACTS["unchecked"]["several_vpcs"], resource_type):
        fact, (first, vpc) = FACTS["different_networks"], next(iter(vpcs.items()))
        second = next(identifier for identifier, other in vpcs.items() if other != vpc)
        raise refusal(fact.get(resource_type, fact["other"]), resource_type.split("::")[1], first, second)


def _check_existing(resource_type: str, properties: Properties, target: Target) -> None:
    for fact in FACTS["existing"]:
        taken = fact.get("taken", False)
        if resource_type != fact["type"]:
            continue
        others = {path: jmespath.search(name, properties) for path, name in fact.get("also", {}).items()}
        for value in listed(jmespath.search(fact["property"], properties)):
            expected = {**others, **fact.get("is", {}), fact["by"]: value}
            among = table_entries(fact["service"], fact, target)
            exists = any(all(_same(part(entry, path), it) for path, it in expected.items()) for entry in among)
            if exists == taken and (target.new or not taken) and value:
                raise refusal(fact, resource_type.split("::")[1], value, *others.values())


def table_entries(service: str, fact: Mapping[str, Any], target: Target) -> list[tuple[Any, Any]]:
    """Return the entries of a moto table with their keys; with `within`, the entries of the tables nested in it."""
    among: Any = getattr(target.backend(service), fact["among"], {})
    among = among() if callable(among) else among
    if fact.get("within"):
        inner = [entry if fact["within"] is True else getattr(entry, fact["within"]) for entry in list(among.values())]
        among = {key: entry for table in inner for key, entry in list(table.items())}
    return list(among.items()) if isinstance(among, dict) else [(getattr(entry, "id", None), entry) for entry in among]


def part(item: tuple[Any, Any], path: str) -> Any:
    """Return the value at a path in the entry of a table. The path `key` is the entry's key."""
    thing = item[1]
    for step in path.split(".") if path != "key" else ():
        thing = thing[step] if isinstance(thing, dict) and step in thing else getattr(thing, step, None)
    return item[0] if path == "key" else thing() if callable(thing) else thing


def _same(actual: Any, expected: Any) -> bool:
    return str(actual).lower() == str(expected).lower() or (
        isinstance(actual, Container) and not isinstance(actual, str) and expected in actual
    )


def identifiers(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the IDs of EC2 resources and their prefixes, from properties whose names match `of` of the prefix."""
    for key, item in value.items() if isinstance(value, Mapping) else ():
        if key not in ("Variables", "Environment", "Tags"):
            yield from identifiers(item, str(key))
    for item in value if isinstance(value, list) else ():
        yield from identifiers(item, name)
    match = _ID.fullmatch(value) if isinstance(value, str) else None
    if match and re.search(FACTS["reference"][match[1]]["of"], name):
        yield match[0], match[1]

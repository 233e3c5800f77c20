"""What resources refer to: it must exist, and EC2's resources that one resource names belong to one VPC."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from trainium_local.resources.generic import STORE
from trainium_local.rules.rule import TEXTS, Place, Properties, refusal

_ID = re.compile(rf"({'|'.join(TEXTS['reference'])})-[0-9a-f]{{8,17}}")


def check(resource_type: str, properties: Properties, place: Place) -> None:
    """Raise Refused for a reference to nothing, or to things of different VPCs."""
    if re.search(TEXTS["unchecked"]["types"], resource_type):
        return
    vpcs: dict[str, str] = {}
    for identifier, kind in _identifiers(properties):
        found = _find(place.ec2, kind, identifier)
        if found is None and not STORE.holds(place.region, identifier):
            raise refusal(TEXTS["reference"][kind], "Ec2", identifier)
        if found is not None and (kind in ("subnet", "sg", "rtb", "vpc") or resource_type == "AWS::EC2::Route"):
            vpcs[identifier] = identifier if kind == "vpc" else _vpc_of(found)
    if len(set(vpcs.values())) > 1 and not re.search(TEXTS["unchecked"]["several_vpcs"], resource_type):
        text = TEXTS["different_networks"]
        raise refusal(text.get(resource_type, text["other"]), resource_type.split("::")[1], *vpcs)


def _identifiers(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key not in ("Variables", "Environment", "Tags"):
                yield from _identifiers(item, str(key))
    elif isinstance(value, list):
        for item in value:
            yield from _identifiers(item, name)
    else:
        match = _ID.fullmatch(str(value))
        if match and re.search(TEXTS["reference"][match[1]]["of"], name):
            yield match[0], match[1]


def _find(ec2: Any, kind: str, identifier: str) -> Any:
    if kind == "i":
        return next((one for one in ec2.all_instances() if one.id == identifier), None)
    known: Any = getattr(ec2, TEXTS["reference"][kind]["among"])
    if kind == "eipalloc":
        return next((one for one in list(known) if one.allocation_id == identifier), None)
    if kind in ("subnet", "sg"):
        return next((one[identifier] for one in list(known.values()) if identifier in one), None)
    return known.get(identifier)


def _vpc_of(found: Any) -> str:
    """The VPC of a thing; of an internet gateway the one it is attached to, empty if it is to none."""
    return str(found.vpc_id) if hasattr(found, "vpc_id") else (found.vpc.id if getattr(found, "vpc", None) else "")

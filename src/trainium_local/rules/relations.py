"""Relations between the properties of a resource and the resources it refers to.

A relation is a JSON schema that the properties must match, or a JMESPath expression that must be false.
"""

from collections import defaultdict
from functools import cache
from typing import Any

from cfnlint.jsonschema import StandardValidator

from trainium_local.rules import references
from trainium_local.rules.rule import FACTS, Properties, Target, refusal
from trainium_local.services.expressions import search


def check(resource_type: str, properties: Properties, target: Target) -> None:
    """Raise Refused for the first relation that is violated."""
    facts = [*_relations()[resource_type], *_relations()["*"]]
    seen = {**properties, "ec2": _ec2(properties, target)} if any("unless" in fact for fact, _ in facts) else properties
    for fact, validator in facts:
        found = search(fact["unless"], seen) if "unless" in fact else None
        if found or not validator.is_valid(properties):
            words = fact["message"].format_map(defaultdict(str, {**seen, "found": found}))
            raise refusal(fact, resource_type.split("::")[1], message=words)


@cache
def _relations() -> dict[str, list[tuple[dict[str, Any], Any]]]:
    found: dict[str, list[tuple[dict[str, Any], Any]]] = defaultdict(list)
    for fact in FACTS["relation"]:
        found[fact["type"]].append((fact, StandardValidator(schema=fact.get("schema", {}))))
    return found


def _ec2(properties: Properties, target: Target) -> dict[str, Any]:
    """Return, by kind, the `shown` attributes of named EC2 resources and their VPCs; and VPCs with `gateways`."""
    gateways = references.known("ec2", FACTS["reference"]["igw"], target)
    found: dict[str, Any] = {"gateways": [references.part(one, "vpc.id") for one in gateways]}
    named = {identifier for identifier, _ in references.identifiers(properties)}
    for kind, fact in reversed(FACTS["reference"].items()):  # VPCs last
        things = [one for one in references.known("ec2", fact, target) if "shown" in fact and one[0] in named]
        found[kind] = [{name: references.part(one, path) for name, path in fact["shown"].items()} for one in things]
        named |= {one["vpc"] for one in found[kind] if one.get("vpc")}
    return found

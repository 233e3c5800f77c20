"""Checks each resource, immediately before it is provisioned, for errors that AWS refuses and moto accepts.

rules.toml contains the facts. The messages are AWS's where they are known. A relation is a JSON schema that the
properties must match, or a JMESPath expression that must be false.
"""

import json
import re
from collections import defaultdict
from functools import cache
from typing import Any

from cfnlint.jsonschema import StandardValidator

from trainium_local.rules import references
from trainium_local.rules.rule import FACTS, Properties, Target, listed, refusal
from trainium_local.services.expressions import search


def refuse(resource_type: str, properties: Properties, target: Target) -> None:
    """Raise Refused, with the service's message, if the service would not create or update the resource."""
    _check_relations(resource_type, properties, target)
    references.check(resource_type, properties, target)
    _check_roles(resource_type, properties, target)


def _check_relations(resource_type: str, properties: Properties, target: Target) -> None:
    facts = [*_relations()[resource_type], *_relations()["*"]]
    values = (
        {**properties, "ec2": _ec2(properties, target)} if any("unless" in fact for fact, _ in facts) else properties
    )
    for fact, validator in facts:
        found = search(fact["unless"], values) if "unless" in fact else None
        if found or not validator.is_valid(properties):
            words = fact["message"].format_map(defaultdict(str, {**values, "found": found}))
            raise refusal(fact, resource_type.split("::")[1], message=words)


@cache
def _relations() -> dict[str, list[tuple[dict[str, Any], Any]]]:
    relations: dict[str, list[tuple[dict[str, Any], Any]]] = defaultdict(list)
    for fact in FACTS["relation"]:
        relations[fact["type"]].append((fact, StandardValidator(schema=fact.get("schema", {}))))
    return relations


def _ec2(properties: Properties, target: Target) -> dict[str, Any]:
    """Return the `shown` attributes of the EC2 resources in the properties and of their VPCs, by kind of resource.

    `gateways` has the IDs of the VPCs with an internet gateway.
    """
    gateways = references.table_entries("ec2", FACTS["reference"]["igw"], target)
    resources: dict[str, Any] = {"gateways": [references.part(resource, "vpc.id") for resource in gateways]}
    named = {identifier for identifier, _ in references.identifiers(properties)}
    for kind, fact in reversed(FACTS["reference"].items()):  # VPCs last
        things = [
            resource
            for resource in references.table_entries("ec2", fact, target)
            if "shown" in fact and resource[0] in named
        ]
        resources[kind] = [
            {name: references.part(resource, path) for name, path in fact["shown"].items()} for resource in things
        ]
        named |= {resource["vpc"] for resource in resources[kind] if resource.get("vpc")}
    return resources


def _check_roles(resource_type: str, properties: Properties, target: Target) -> None:
    fact = FACTS["role"].get(resource_type)
    for arn in listed(search(fact["path"], dict(properties))) if fact else ():
        if f"::{target.account}:role/" in str(arn) and not _may_assume(target, str(arn), fact["service"]):
            raise refusal(fact, resource_type.split("::")[1], arn)


def _may_assume(target: Target, arn: str, service: str) -> bool:
    role = next((role for role in list(target.backend("iam").roles.values()) if role.arn == arn), None)
    if role is None:
        return "/aws-service-role/" in arn
    statements = listed(json.loads(role.assume_role_policy_document).get("Statement"))
    allowed = [statement.get("Principal") for statement in statements if statement.get("Effect") == "Allow"]
    services = [name for who in allowed for name in listed(who.get("Service") if isinstance(who, dict) else who)]
    return any(name == "*" or re.fullmatch(rf"{service}\..*amazonaws\.com(\.cn)?", name) for name in services)

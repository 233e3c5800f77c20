"""Roles and users: a principal that is named must exist, and a service must be allowed to assume its role."""

import json
import re
from typing import Any

from trainium_local.rules.rule import FACTS, Place, Properties, listed, refusal


def check(resource_type: str, properties: Properties, place: Place) -> None:
    """Raise Refused if the service cannot assume the role that the resource names."""
    fact, arn = FACTS["role"].get(resource_type), properties
    for step in fact["path"].split(".") if fact else ():
        arn: Any = (arn or {}).get(step)
    if fact and f"::{place.account}:role/" in str(arn) and not _may_assume(place, str(arn), fact["service"]):
        raise refusal(fact, resource_type.split("::")[1], arn)


def exists(principal: str, place: Place) -> bool:
    """Whether a role or user of the account exists; anybody else is taken to."""
    match = re.fullmatch(rf"arn:[^:]+:iam::{place.account}:(role|user)/(?!aws-service-role)(.*/)?([^/]+)", principal)
    if match is None:
        return True
    iam = place.backend("iam")
    return match[3] in (iam.users if match[1] == "user" else [role.name for role in list(iam.roles.values())])


def _may_assume(place: Place, arn: str, service: str) -> bool:
    role = next((one for one in list(place.backend("iam").roles.values()) if one.arn == arn), None)
    if role is None:
        return "/aws-service-role/" in arn
    statements = listed(json.loads(role.assume_role_policy_document).get("Statement"))
    allowed = [one.get("Principal") for one in statements if one.get("Effect") == "Allow"]
    services = [name for one in allowed for name in listed(one.get("Service") if isinstance(one, dict) else one)]
    return any(name == "*" or re.fullmatch(rf"{service}\..*amazonaws\.com(\.cn)?", name) for name in services)

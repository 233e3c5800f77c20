"""Policy documents: cfn-lint's schemas of their kinds, quotas, principals, and what buckets ask of theirs.

A principal that is named must exist, and a service must be allowed to assume its role.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from cfnlint.helpers import load_resource
from cfnlint.jsonschema import StandardValidator
from cfnlint.schema.resolver import RefResolver

from trainium_local.permissions.requests import reference
from trainium_local.rules.rule import FACTS, Properties, Target, listed, refusal
from trainium_local.services.expressions import search

_SCHEMAS = "cfnlint.data.schemas.other.iam"


def check(resource_type: str, properties: Properties, target: Target) -> None:
    """Raise Refused if the service would not take a policy of the resource, or cannot assume the role that it names."""
    _check_role(resource_type, properties, target)
    service, fact = resource_type.split("::")[1], FACTS["policy"].get(resource_type, {})
    inline = [one["PolicyDocument"] for one in properties.get("Policies") or () if resource_type == "AWS::IAM::Role"]
    _check_size(inline, FACTS["inline_policies"])
    for document in inline:
        _check_document(document, FACTS["inline_policies"], service)
    document = properties.get(fact.get("property"))
    if not document:
        return
    _check_size([document], fact)
    statements = _check_document(document, fact, service)
    for kind, principal in _principals(statements):
        if (kind == "AWS" and not _exists(principal, target)) or (kind == "Service" and "." not in principal):
            raise refusal(fact, service, f'"{kind.upper()}":"{principal}"')
    for message in _scope(statements, fact) if "scope" in fact else _bucket(statements, properties):
        raise refusal(fact, service, message=message)


def _check_document(given: Any, fact: Properties, service: str) -> list[dict[str, Any]]:
    """The statements of a policy. Raises Refused if it is malformed."""
    document = json.loads(given) if isinstance(given, str) else given
    for error in _validator(fact["kind"]).iter_errors(document):
        # outside IAM any text is a Sid; the resources of identity policies are moto's to check
        if ("Resource" if fact["kind"] == "identity" else "Sid") not in error.path:
            words = next(
                (explanation for found, explanation in FACTS["malformed"].items() if found in error.message),
                "Syntax errors in policy.",
            )
            raise refusal(fact, service, message=fact.get("malformed", words))
    return listed(document["Statement"])


def _check_size(documents: list[Any], fact: Properties) -> None:
    """White space does not count."""
    parsed = [json.loads(one) if isinstance(one, str) else one for one in documents]
    if sum(len(json.dumps(one, separators=(",", ":"))) for one in parsed) > fact.get("most", 1 << 20):
        raise refusal({"code": "LimitExceeded", "message": fact["quota"]}, "Iam")


def _principals(statements: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for principal in [one.get("Principal") for one in statements]:
        for kind, names in (principal if isinstance(principal, dict) else {}).items():
            yield from ((kind, name) for name in listed(names) if isinstance(name, str))


def _scope(statements: list[dict[str, Any]], fact: Properties) -> Iterator[str]:
    actions = [action for one in statements for action in listed(one.get("Action"))]
    if not all(re.match(rf"{fact['service']}:|\*$", action, re.IGNORECASE) for action in actions):
        yield fact["scope"]


def _bucket(statements: list[dict[str, Any]], properties: Properties) -> Iterator[str]:
    known: dict[str, Any] = reference()["s3"]["Actions"]
    for statement in statements if "Bucket" in properties else ():
        names = [str(one).rpartition(":::")[2].partition("/") for one in listed(statement.get("Resource"))]
        if any("*" not in name and name != properties["Bucket"] for name, _, _ in names):
            yield "Policy has invalid resource"
        kinds = {"object" if slash else "bucket" for name, slash, _ in names if "*" not in name}
        for action in [one.lower() for one in listed(statement.get("Action")) if "*" not in one and "?" not in one]:
            if action.removeprefix("s3:") not in known:
                yield "Policy has invalid action"
            elif len(kinds) == 1 and not kinds & set(known[action.removeprefix("s3:")].get("Resources", kinds)):
                yield "Action does not apply to any resource(s) in statement"


_load = cache(load_resource)


def _validator(kind: str) -> Any:
    """A new one each time: a resolver remembers which of its documents it is in, so threads cannot share it."""
    policy, schema = _load(_SCHEMAS, "policy.json"), _load(_SCHEMAS, f"policy_{kind}.json")
    resolver = RefResolver.from_schema(schema, store={"policy": policy, schema["$id"]: schema})
    return StandardValidator(schema=schema, resolver=resolver)


def _check_role(resource_type: str, properties: Properties, target: Target) -> None:
    fact = FACTS["role"].get(resource_type)
    for arn in listed(search(fact["path"], dict(properties))) if fact else ():
        if f"::{target.account}:role/" in str(arn) and not _may_assume(target, str(arn), fact["service"]):
            raise refusal(fact, resource_type.split("::")[1], arn)


def _exists(principal: str, target: Target) -> bool:
    """Whether a role or user of the account exists; anybody else is taken to."""
    match = re.fullmatch(rf"arn:[^:]+:iam::{target.account}:(role|user)/(?!aws-service-role)(.*/)?([^/]+)", principal)
    if match is None:
        return True
    iam = target.backend("iam")
    return match[3] in (iam.users if match[1] == "user" else [role.name for role in list(iam.roles.values())])


def _may_assume(target: Target, arn: str, service: str) -> bool:
    role = next((one for one in list(target.backend("iam").roles.values()) if one.arn == arn), None)
    if role is None:
        return "/aws-service-role/" in arn
    statements = listed(json.loads(role.assume_role_policy_document).get("Statement"))
    allowed = [one.get("Principal") for one in statements if one.get("Effect") == "Allow"]
    services = [name for one in allowed for name in listed(one.get("Service") if isinstance(one, dict) else one)]
    return any(name == "*" or re.fullmatch(rf"{service}\..*amazonaws\.com(\.cn)?", name) for name in services)

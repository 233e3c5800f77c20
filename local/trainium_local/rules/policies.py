"""Policy documents: cfn-lint's schemas of their kinds, quotas, principals, and what buckets ask of theirs."""

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from cfnlint.helpers import load_resource
from cfnlint.jsonschema import StandardValidator
from cfnlint.schema.resolver import RefResolver

from trainium_local.rules.roles import exists
from trainium_local.rules.rule import TEXTS, Place, Properties, listed, refusal

_SCHEMAS = "cfnlint.data.schemas.other.iam"
#: What cfn-lint says -> what IAM and S3 say.
_WORDS = {
    "'NotPrincipal'": "Missing required field Principal",
    "'NotAction'": "Policy statement must contain actions.",
    "'NotResource'": "Policy statement must contain resources.",
    "'Principal' was unexpected": "Policy document should not specify a principal.",
    "'Resource' was unexpected": "Has prohibited field Resource",
    "'^[A-Za-z0-9]+$'": "Statement IDs (SID) must be alpha-numeric.",
}


def check(resource_type: str, properties: Properties, place: Place) -> None:
    """Raise Refused if the service would not take a policy of the resource."""
    service, text = resource_type.split("::")[1], TEXTS["policy"].get(resource_type, {})
    inline = [one["PolicyDocument"] for one in properties.get("Policies") or () if resource_type == "AWS::IAM::Role"]
    _check_size(inline, TEXTS["inline_policies"])
    for document in inline:
        _check_document(document, TEXTS["inline_policies"], service)
    document = properties.get(text.get("property"))
    if not document:
        return
    _check_size([document], text)
    statements = _check_document(document, text, service)
    for kind, principal in _principals(statements):
        if (kind == "AWS" and not exists(principal, place)) or (kind == "Service" and "." not in principal):
            raise refusal(text, service, f'"{kind.upper()}":"{principal}"')
    for message in _scope(statements, text) if "scope" in text else _bucket(statements, properties):
        raise refusal(text, service, message=message)


def _check_document(given: Any, text: Properties, service: str) -> list[dict[str, Any]]:
    """The statements of a policy. Raises Refused if it is malformed."""
    document = json.loads(given) if isinstance(given, str) else given
    for error in _validator(text["kind"]).iter_errors(document):
        # outside IAM any text is a Sid; the resources of identity policies are moto's to check
        if ("Resource" if text["kind"] == "identity" else "Sid") not in error.path:
            words = next((said for found, said in _WORDS.items() if found in error.message), "Syntax errors in policy.")
            raise refusal(text, service, message=text.get("malformed", words))
    return listed(document["Statement"])


def _check_size(documents: list[Any], text: Properties) -> None:
    """White space does not count."""
    parsed = [json.loads(one) if isinstance(one, str) else one for one in documents]
    if sum(len(json.dumps(one, separators=(",", ":"))) for one in parsed) > text.get("most", 1 << 20):
        raise refusal({"code": "LimitExceeded", "message": text["quota"]}, "Iam")


def _principals(statements: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for principal in [one.get("Principal") for one in statements]:
        for kind, names in (principal if isinstance(principal, dict) else {}).items():
            yield from ((kind, name) for name in listed(names) if isinstance(name, str))


def _scope(statements: list[dict[str, Any]], text: Properties) -> Iterator[str]:
    actions = [action for one in statements for action in listed(one.get("Action"))]
    if not all(re.match(rf"{text['service']}:|\*$", action, re.IGNORECASE) for action in actions):
        yield text["scope"]


def _bucket(statements: list[dict[str, Any]], properties: Properties) -> Iterator[str]:
    known: dict[str, Any] = load_resource("cfnlint.data.AdditionalSpecs", "Policies.json")["s3"]["Actions"]
    for statement in statements if "Bucket" in properties else ():
        names = [str(one).partition(":s3:::")[2].partition("/") for one in listed(statement.get("Resource"))]
        if any("*" not in name and name != properties["Bucket"] for name, _, _ in names):
            yield "Policy has invalid resource"
        kinds = {"object" if slash else "bucket" for _, slash, _ in names}
        for action in [one.lower() for one in listed(statement.get("Action")) if "*" not in one and "?" not in one]:
            if action.removeprefix("s3:") not in known:
                yield "Policy has invalid action"
            elif kinds and not kinds & set(known[action.removeprefix("s3:")].get("Resources", kinds)):
                yield "Action does not apply to any resource(s) in statement"


@cache
def _validator(kind: str) -> Any:
    policy, schema = load_resource(_SCHEMAS, "policy.json"), load_resource(_SCHEMAS, f"policy_{kind}.json")
    resolver = RefResolver.from_schema(schema, store={"policy": policy, schema["$id"]: schema})
    return StandardValidator(schema=schema, resolver=resolver)

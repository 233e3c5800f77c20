"""Registry schemas, botocore's service models, and what moto implements of them."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from botocore import xform_name
from botocore.session import Session

Row = dict[str, Any]

CREATING = (
    "Create", "Put", "Register", "Run", "Allocate", "Request", "Publish", "Add", "Import", "Attach", "Associate",
    "Authorize", "Subscribe", "Set", "Enable", "Upload", "Start", "Issue", "Provision", "Purchase",
)  # fmt: skip
DELETING = (
    "Delete", "Remove", "Deregister", "Terminate", "Release", "Detach", "Disassociate", "Revoke", "Unsubscribe",
    "Disable", "Cancel", "Schedule",
)  # fmt: skip
CHANGING = ("Update", "Modify", "Put", "Set", "Replace", "Enable", "Upload")
READING = ("Get", "Describe", "BatchGet", "List")
PAIRS = {"Register": "Deregister", "Add": "Remove", "Attach": "Detach", "Associate": "Disassociate"}
_VERB = re.compile(r"(BatchGet|[A-Z][a-z]+)(.*)")


TOKEN = re.compile(r"(creation|client|idempotency|caller)\w*(token|reference)", re.IGNORECASE)

#: What no schema tells of a type, as parts of its row, or as the whole row.
HINTS: dict[str, Row] = tomllib.loads((Path(__file__).parent / "hints.toml").read_text())


def split(operation: str) -> tuple[str, str]:
    found = _VERB.match(operation)
    return (found[1], found[2]) if found else (operation, "")


@cache
def _session() -> Session:
    return Session()


@cache
def _services_by_prefix() -> dict[str, list[str]]:
    """IAM's prefix of a service -> botocore's names of the services behind it."""
    found: dict[str, list[str]] = {}
    for name in _session().get_available_services():
        metadata = model(name).metadata
        for prefix in {name, metadata.get("endpointPrefix", ""), metadata.get("signingName", "")}:
            found.setdefault(prefix.lower(), []).append(name)
    return found


@cache
def model(service: str) -> Any:
    return _session().get_service_model(service)


#: CloudFormation's name of a service, where it is neither botocore's nor IAM's.
_NAMES = {
    "ApiGateway": "apigateway", "ApiGatewayV2": "apigatewayv2", "Cognito": "cognito-idp", "CertificateManager": "acm",
    "ElasticLoadBalancing": "elb", "ElasticLoadBalancingV2": "elbv2", "Elasticsearch": "es", "EMR": "emr",
    "KinesisFirehose": "firehose", "MSK": "kafka", "OpenSearchService": "opensearch", "AmazonMQ": "mq",
    "ApplicationAutoScaling": "application-autoscaling", "AutoScaling": "autoscaling", "DirectoryService": "ds",
    "SES": "ses", "SSMContacts": "ssm-contacts", "StepFunctions": "stepfunctions", "Lex": "lexv2-models",
    "EventSchemas": "schemas", "SSO": "sso-admin", "IdentityStore": "identitystore", "APS": "amp",
    "VpcLattice": "vpc-lattice", "ResourceGroups": "resource-groups", "ACMPCA": "acm-pca",
}  # fmt: skip


def services_of(document: dict[str, Any]) -> list[str]:
    """The services that may provision the type: named as CloudFormation names it, then those whose calls it needs."""
    segment = document["typeName"].split("::")[1]
    found = [_NAMES[segment]] if segment in _NAMES else []
    create = document.get("handlers", {}).get("create", {}).get("permissions", [])
    prefixes = [segment.lower(), *(permission.partition(":")[0].lower() for permission in create)]
    for prefix in dict.fromkeys(prefixes):
        found = found or _services_by_prefix().get(prefix, [])
    return [one for one in dict.fromkeys(found) if implemented(one)]


@cache
def implemented(service: str) -> frozenset[str]:
    """The operations of a service that moto has."""
    package = files("moto") / {"lambda": "awslambda"}.get(service, service).replace("-", "")
    if not package.is_dir():
        return frozenset()
    names: set[str] = set()
    for place in (package, package / "responses"):
        if place.is_dir():
            for file in place.iterdir():
                if file.name.endswith(".py") and "models" not in file.name:
                    names |= set(re.findall(r"^    def (\w+)\(", file.read_text(), re.MULTILINE))
    own = {"SetSMSAttributes": "set_sms_attributes"}
    return frozenset(one for one in model(service).operation_names if own.get(one, xform_name(one)) in names)


class Type:
    """A registry schema with what the derivation asks of it."""

    def __init__(self, document: dict[str, Any], ref: list[str] | None) -> None:
        self.document, self.name = document, str(document["typeName"])
        self.kind = self.name.rsplit("::", 1)[-1]
        self.read_only = self._paths("readOnlyProperties")
        outputs = {path for path in self.read_only if "." not in path}
        self.properties = [name for name in document["properties"] if name not in outputs]
        self.required = set(document.get("required", ()))
        self.whole_identifier = self._paths("primaryIdentifier")
        self.identifier = ref or self._paths("primaryIdentifier")
        self.create_only = self._paths("createOnlyProperties")
        tagging = document.get("tagging", {})
        self.tag_property = str(tagging.get("tagProperty", "/properties/Tags")).removeprefix("/properties/")
        if self.tag_property not in document["properties"]:
            self.tag_property = ""

    def _paths(self, keyword: str) -> list[str]:
        return [pointer.removeprefix("/properties/").replace("/", ".") for pointer in self.document.get(keyword) or []]

    def resolve(self, schema: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in schema:
            target: Any = self.document
            for step in schema["$ref"].removeprefix("#/").split("/"):
                target = target[step]
            schema = target
        return schema

    def schema(self, name: str) -> dict[str, Any]:
        return self.resolve(self.document["properties"][name])

    def kinds(self, name: str) -> set[str]:
        given = self.schema(name).get("type", "object")
        return {given} if isinstance(given, str) else set(given)

    def calls(self, handler: str) -> list[str]:
        permissions = self.document.get("handlers", {}).get(handler, {}).get("permissions", [])
        return [permission.partition(":")[2] for permission in permissions]


def fits(kinds: set[str], shape: Any) -> bool:
    """Whether a property of these JSON types can become a value of the shape."""
    if "array" in kinds:
        return shape.type_name in ("list", "map") or kinds != {"array"}
    if kinds == {"object"}:
        return shape.type_name in ("structure", "map", "string", "blob")
    return shape.type_name not in ("structure", "map")


def members_of(shape: Any) -> dict[str, Any]:
    if shape is not None and shape.type_name == "map":  # an enumeration names the keys that its answers have
        return dict.fromkeys(getattr(shape.key, "enum", None) or (), shape.value)
    return dict(shape.members) if shape is not None and shape.type_name == "structure" else {}

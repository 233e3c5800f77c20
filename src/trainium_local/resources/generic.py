"""Types that no service here knows: checked against their registry schema and kept, nothing more.

Identifiers and attributes are made up in the type's form.
"""

import re
from functools import cache
from typing import Any

import botocore.session
from moto.moto_api._internal import mock_random

from trainium_local.resources.invented import fitting
from trainium_local.resources.registry import Provisioned, ProvisioningError, Request, ResourceType

_NOTE = "The embedded AWS creates nothing for this type: it was checked against its schema and kept as a record."
#: What `Ref` gives where that is not the primary identifier (AWS Construct Library 2.262, get jobDefinitionRef etc.)
_REFERENCES = {
    "AWS::Batch::JobDefinition": ["JobDefinitionArn"],
    "AWS::SecretsManager::SecretTargetAttachment": ["SecretId"],
}


class GenericStore(ResourceType):
    """A resource type of which only the record exists, in its stack."""

    def __init__(self) -> None:
        self._identifiers: set[tuple[str, str, str]] = set()

    def holds(self, region: str, physical_id: str, resource_type: str = "") -> bool:
        """Whether a resource of the type, by default of any, is stored under that physical id."""
        return any(
            (place, name) == (region, physical_id) and resource_type in ("", kind)
            for place, kind, name in tuple(self._identifiers)
        )

    def create(self, request: Request) -> Provisioned:
        schema, name = request.schema, request.generated_name()
        # AWS names what is not named
        kind = request.resource_type.rsplit("::", 1)[-1]
        names = {"Name", f"{kind}Name"} & schema.properties - request.properties.keys()
        attributes = {path: made_up(path, request, name) for path in (*schema.attributes, *names)}
        paths = _REFERENCES.get(request.resource_type, schema.primary_identifier)
        identifiers = {path: request.properties.get(path) or attributes.get(path) for path in paths}
        attributes |= {path: value or name for path, value in identifiers.items() if path not in request.properties}
        physical_id = "|".join(str(value or name) for value in identifiers.values()) or name
        if self.holds(request.region, physical_id, request.resource_type):
            raise ProvisioningError(
                f"Resource of type '{request.resource_type}' with identifier '{physical_id}' already exists."
            )
        self._identifiers.add((request.region, request.resource_type, physical_id))
        return Provisioned(physical_id=physical_id, attributes=attributes, note=_NOTE)

    def delete(self, request: Request, current: Provisioned) -> None:
        self._identifiers.discard((request.region, request.resource_type, current.physical_id))


def made_up(path: str, request: Request, name: str) -> Any:
    """An attribute's value in the type's form."""
    value = _in_common_form(path, request, name)
    definition, place = request.schema.definition(path), {"region": request.region, "account": request.account}
    if path.lower().endswith("arn"):
        value = fitting({**definition, **_arn_in_api(request.resource_type)}, value, **place)
    return fitting(definition, value, **place)


@cache
def _arn_in_api(resource_type: str) -> dict[str, Any]:
    """The ARNs of a type's kind in the API of its service, which other types refer to in that form."""
    _, service, kind = resource_type.lower().split("::")
    session: Any = botocore.session.get_session()
    if service not in session.get_available_services():
        return {}
    model = session.get_service_model(service)
    arns = (name for name in model.shape_names if re.fullmatch(rf"{kind}\w*arn", name, re.IGNORECASE))
    return next((found for name in arns if "pattern" in (found := model.shape_for(name).metadata)), {})


def _in_common_form(path: str, request: Request, name: str) -> str:
    _, service, kind = request.resource_type.split("::")
    leaf = path.rsplit(".", 1)[-1].lower()
    given_name = request.properties.get("Name") or request.properties.get(f"{kind}Name") or name
    if leaf.endswith("arn"):
        dashed = re.sub(r"(?<!^)(?=[A-Z])", "-", kind).lower()
        return f"arn:aws:{service.lower()}:{request.region}:{request.account}:{dashed}/{given_name}"
    if leaf in ("id", f"{kind.lower()}id"):
        return f"{kind.lower()}-{mock_random.get_random_hex(17)}"
    if leaf.endswith("status") or leaf == "state":
        return "ACTIVE"
    if leaf.endswith("name"):
        return given_name
    return f"{name}-{leaf}"


class _Nothing(ResourceType):
    """A type that provisions nothing, on AWS neither."""

    def create(self, request: Request) -> Provisioned:
        return Provisioned(physical_id=request.logical_id)


STORE = GenericStore()
TYPES: dict[str, ResourceType] = {"AWS::CDK::Metadata": _Nothing()}

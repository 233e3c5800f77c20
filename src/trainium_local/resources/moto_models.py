"""Types without an adapter, provisioned by moto's own CloudFormation models.

Only models that support deletion are used. moto changes its state directly; the type's handlers name the permissions.
"""

import copy
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Any

from moto.cloudformation.exceptions import UnformattedGetAttTemplateException
from moto.core.common_models import CloudFormationModel
from moto.core.exceptions import ServiceException

from trainium_local.resources import api, handler_permissions
from trainium_local.resources.registry import (
    NeedsReplacementError,
    Properties,
    Provisioned,
    ResourceRequest,
    ResourceType,
)

_NOTE = "Provisioned by moto's own model of this type, without an adapter of the embedded AWS."


class MotoModel(ResourceType):
    """A resource type provisioned by moto's model."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._resources: dict[tuple[str, str], Any] = {}

    def create(self, request: ResourceRequest) -> Provisioned:
        handler_permissions.refuse_unless_allowed(request, "create")
        name = self._name(request)
        names = {"LogicalId": request.logical_id, "StackId": request.stack_id, "ResourceType": request.resource_type}
        with api.lock:
            resource = self._model.create_from_cloudformation_json(
                name, _document(request.resource_type, request.properties), request.account, request.region, **names
            )
        return self._provisioned(request, resource)

    def update(self, request: ResourceRequest, current: Provisioned, previous: Properties) -> Provisioned:
        if not _implements(self._model, "update_from_cloudformation_json"):
            raise NeedsReplacementError
        handler_permissions.refuse_unless_allowed(request, "update")
        with api.lock:
            resource = self._model.update_from_cloudformation_json(
                original_resource=self._resources[request.region, current.physical_id],
                new_resource_name=self._name(request),
                cloudformation_json=_document(request.resource_type, request.properties),
                account_id=request.account,
                region_name=request.region,
            )
        return self._provisioned(request, resource)

    def delete(self, request: ResourceRequest, current: Provisioned) -> None:
        handler_permissions.refuse_unless_allowed(request, "delete")
        resource = self._resources[request.region, current.physical_id]
        with api.lock:
            if _implements(self._model, "delete_from_cloudformation_json"):
                document = _document(request.resource_type, request.properties)
                self._model.delete_from_cloudformation_json(
                    current.physical_id, document, request.account, request.region
                )
            else:
                resource.delete(request.account, request.region)
        del self._resources[request.region, current.physical_id]

    def _name(self, request: ResourceRequest) -> str:
        place = self._model.cloudformation_name_type()
        limit = 32 if "LoadBalancing" in request.resource_type else 64
        return str(request.properties.get(place) or request.generated_name(limit))

    def _provisioned(self, request: ResourceRequest, resource: Any) -> Provisioned:
        physical_id = str(resource.physical_resource_id)
        self._resources[request.region, physical_id] = resource
        return Provisioned(physical_id=physical_id, attributes=dict(_attributes(request, resource)), note=_NOTE)


def _attributes(request: ResourceRequest, resource: Any) -> Iterator[tuple[str, Any]]:
    """Yield the type's attributes that the model supports."""
    for name in request.schema.attributes:
        unsupported = (UnformattedGetAttTemplateException, NotImplementedError, AttributeError, KeyError)
        with suppress(ServiceException, *unsupported):
            yield name, resource.get_cfn_attribute(name)


def _document(resource_type: str, properties: Properties) -> dict[str, Any]:
    return {"Type": resource_type, "Properties": copy.deepcopy(properties)}


def _implements(model: Any, method: str) -> bool:
    return not hasattr(getattr(model, method), "__isabstractmethod__")


@cache
def types() -> dict[str, MotoModel]:
    """Return moto's models of the types that it can delete. Imports much of moto, which takes a second."""
    from moto.cloudformation import parsing

    return {
        name: MotoModel(model)
        for name, model in parsing.get_model_map().items()
        if model is not CloudFormationModel
        and not name.startswith("AWS::CloudFormation::")
        and (_implements(model, "delete_from_cloudformation_json") or callable(getattr(model, "delete", None)))
    }

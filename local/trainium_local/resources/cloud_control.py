"""The Cloud Control API's reading half, which moto lacks: it shows what the schema-checked store keeps."""

from __future__ import annotations

import json
import re
import sys
from types import ModuleType
from typing import Any

import moto.backend_index
from moto.core.base_backend import BackendDict, BaseBackend
from moto.core.exceptions import ServiceException
from moto.core.responses import ActionResult, BaseResponse

from trainium_local.resources.generic import STORE


class ResourceNotFoundError(ServiceException):
    code = "ResourceNotFoundException"


class CloudControlBackend(BaseBackend):
    """moto asks each service for a backend; the state is in the store."""


# moto looks the URLs of a backend up beside the module of its class
CloudControlBackend.__module__ = "moto.cloudcontrol.models"


class CloudControlResponse(BaseResponse):
    """ListResources and GetResource."""

    def __init__(self) -> None:
        super().__init__(service_name="cloudcontrol")
        self.automated_parameter_parsing = True

    def list_resources(self) -> ActionResult:
        resource_type = self._get_param("TypeName")
        kept = STORE.kept(self.region, resource_type)
        descriptions = [_description(identifier, resource) for identifier, resource in kept.items()]
        return ActionResult({"TypeName": resource_type, "ResourceDescriptions": descriptions})

    def get_resource(self) -> ActionResult:
        resource_type, identifier = self._get_param("TypeName"), self._get_param("Identifier")
        kept = STORE.kept(self.region, resource_type)
        if identifier not in kept:
            raise ResourceNotFoundError(
                f"Resource of type '{resource_type}' with identifier '{identifier}' was not found."
            )
        description = _description(identifier, kept[identifier])
        return ActionResult({"TypeName": resource_type, "ResourceDescription": description})


def _description(identifier: str, resource: dict[str, Any]) -> dict[str, str]:
    return {"Identifier": identifier, "Properties": json.dumps(resource)}


def install() -> None:
    """Make moto's server answer for the service."""
    base = r"https?://cloudcontrolapi\.(.+)\.amazonaws\.com"
    package, models, urls = (ModuleType(f"moto.cloudcontrol{part}") for part in ("", ".models", ".urls"))
    package.__dict__["cloudcontrol_backends"] = BackendDict(CloudControlBackend, "ec2")  # ec2 stands for: all regions
    urls.__dict__.update(url_bases=[base], url_paths={"{0}/$": CloudControlResponse.dispatch})
    sys.modules.update({module.__name__: module for module in (package, models, urls)})
    moto.backend_index.backend_url_patterns.append(("cloudcontrol", re.compile(base)))

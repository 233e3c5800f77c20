"""The interface between the CloudFormation engine and provisioners: request, result, table of types."""

import string
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from moto.moto_api._internal import mock_random

from trainium_local.resources import schemas

Properties = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class ResourceRequest:
    """A resource to provision. Its properties are resolved and include the tags of the stack."""

    account: str
    region: str
    stack_name: str
    stack_id: str
    logical_id: str
    resource_type: str
    properties: Properties
    update_policy: Mapping[str, Any] = field(default_factory=dict[str, Any])
    cancelled: threading.Event = field(default_factory=threading.Event)

    @property
    def schema(self) -> schemas.Schema:
        """The schema of the type."""
        schema = schemas.find(self.resource_type, self.region)
        assert schema is not None, "types without a schema have no provisioner that needs it"
        return schema

    def generated_name(self, limit: int = 128) -> str:
        """Return a physical name in CloudFormation's form, stack-logical-random, of at most `limit` characters."""
        suffix = "".join(mock_random.choice(string.ascii_uppercase + string.digits) for _ in range(12))
        stem = f"{self.stack_name}-{self.logical_id}"[: limit - len(suffix) - 1].rstrip("-")
        return f"{stem}-{suffix}"


@dataclass(kw_only=True)
class Provisioned:
    """An existing resource: the results of `Ref` and `Fn::GetAtt`, and the text of its event."""

    physical_id: str
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    note: str | None = None


class ProvisioningError(Exception):
    """A resource could not be provisioned. After a failed creation, `leftover` exists and must be deleted."""

    def __init__(self, reason: str, leftover: Provisioned | None = None) -> None:
        super().__init__(reason)
        self.leftover = leftover


class CancelledError(ProvisioningError):
    """A provisioner stopped waiting because `Request.cancelled` was set."""

    def __init__(self, leftover: Provisioned | None = None) -> None:
        super().__init__("cancelled", leftover)


class UnchangeableError(ProvisioningError):
    """The update was refused before the resource changed."""


class NeedsReplacementError(Exception):
    """The update requires replacement of the resource."""


class ResourceType(Protocol):
    """Provisions the resources of one CloudFormation type. An exception other than NeedsReplacementError fails it."""

    def unsupported(self, properties: Collection[str]) -> list[str]:
        """Return the names of the properties that the embedded AWS cannot apply."""
        return []

    def create(self, request: ResourceRequest) -> Provisioned: ...

    def update(self, request: ResourceRequest, current: Provisioned, previous: Properties) -> Provisioned:
        return current

    def complete(self, current: Provisioned) -> None:
        """End a creation or update: the operation of the stack succeeded, and is not rolled back."""

    def delete(self, request: ResourceRequest, current: Provisioned) -> None:
        pass


_types: dict[str, ResourceType] = {}
_others: list[Callable[[], Mapping[str, ResourceType]]] = []


def register(resource_type: str, provisioner: ResourceType) -> None:
    """Register `provisioner` for `resource_type`, e.g. AWS::EC2::VPC."""
    _types[resource_type] = provisioner


def register_others(types: Callable[[], Mapping[str, ResourceType]]) -> None:
    """Use the provisioners that `types` returns for resource types that are not registered."""
    _others[:] = [types]


def find(resource_type: str) -> ResourceType | None:
    """Return the provisioner of a type, or None if the type is not supported."""
    name = schemas.CUSTOM_RESOURCE if schemas.is_custom(resource_type) else resource_type
    return _types.get(name) or _other_types().get(name)


def _other_types() -> Mapping[str, ResourceType]:
    return _others[0]() if _others else {}


def with_adapter() -> list[str]:
    """Return the types that have an adapter."""
    return sorted(_types)

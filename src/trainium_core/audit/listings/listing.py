"""A listing as data: the call that lists one kind of resource, and the function that reads an entry."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import jmespath

from trainium_core.audit.resource import Resource
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import Clients
from trainium_runtime.tags import tag_values

Entry = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Location:
    """The account and region of resources, for their ARNs."""

    partition: str
    region: str
    account: str

    def arn(self, service: str, tail: str, *, is_global: bool = False) -> str:
        region, account = ("", self.account) if is_global else (self.region, self.account)
        return f"arn:{self.partition}:{service}:{region}:{account}:{tail}"


ClientFactory = Callable[[str], Any]
"""Returns the client of a service."""


def unmeasured(_client_of: ClientFactory, resource: Resource) -> Resource | None:
    return resource


@dataclass(frozen=True, kw_only=True)
class Listing:
    """One kind of resource.

    Attributes:
        permission: The action that lists it.
        call: Method of boto3's client, if it is not named after the permission.
        entries: JMESPath of the list in the response.
        read: Reads an entry; None if it is deleted, or part of another resource.
        again: Arguments of further calls, if one call does not list everything.
        endpoint_region: Region of the endpoint of a global service.
        handed_over: Whether users keep it when they destroy the cluster, so that it counts as kept. It is listed only
            if the tag index names one of the cluster: most accounts have none, and may not be allowed to list it.
        in_estimates: False if it and its parts cost almost nothing while unused; `trn cost` skips it.
    """

    kind: str
    resource_type: str
    arn_type: str
    service: str
    permission: str
    entries: str
    read: Callable[[Entry, Location], Resource | None]
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    call: str = ""
    again: tuple[Mapping[str, Any], ...] = ()
    endpoint_region: str | None = None
    measure: Callable[[ClientFactory, Resource], Resource | None] = unmeasured
    handed_over: bool = False
    in_estimates: bool = True

    @property
    def operation(self) -> str:
        """The method of boto3's client."""
        return self.call or re.sub(r"(?<!^)(?=[A-Z])", "_", self.permission.partition(":")[2]).lower()


class AwsResourceLister:
    """Implements trainium_core.audit.resource.ResourceLister for one listing in one region."""

    def __init__(self, listing: Listing, location: Location, clients: Clients) -> None:
        self.kind, self.resource_type, self.arn_type = listing.kind, listing.resource_type, listing.arn_type
        self.handed_over, self.in_estimates = listing.handed_over, listing.in_estimates
        self._listing, self._location, self._clients = listing, location, clients

    def resources(self) -> Iterator[Resource]:
        # The full action name: the call needs it on all resources.
        with read_errors(self._listing.permission):
            entries = list(self._entries())
            read = (self._listing.read(entry, self._location) for entry in entries)
            yield from (resource for resource in read if resource is not None)

    def measured(self, resource: Resource) -> Resource | None:
        return self._listing.measure(self._client, resource)

    def _client(self, service: str) -> Any:
        return self._clients.client(service, self._listing.endpoint_region or self._location.region)

    def _entries(self) -> Iterator[Entry]:
        for arguments in (self._listing.arguments, *self._listing.again):
            yield from self._listed({name: self._filled(value) for name, value in arguments.items()})

    def _listed(self, arguments: Mapping[str, Any]) -> Iterator[Entry]:
        listing = self._listing
        client = self._client(listing.service)
        if client.can_paginate(listing.operation):
            pages = client.get_paginator(listing.operation).paginate(**arguments)
            yield from (entry for entry in pages.search(listing.entries) if entry is not None)
        else:
            yield from jmespath.search(listing.entries, getattr(client, listing.operation)(**arguments)) or ()

    def _filled(self, value: Any) -> Any:
        return value.format(account=self._location.account) if isinstance(value, str) else value


def tags_of(entry: Entry) -> dict[str, str]:
    """The tags, in the form of most services."""
    return tag_values(entry.get("Tags"))


def gib(size_in_bytes: int) -> str:
    """A size in GiB, as AWS bills it."""
    return f"{size_in_bytes / 2**30:.3g} GiB" if size_in_bytes >= 2**20 else f"{size_in_bytes} bytes"

"""A listing as data: the call that lists one kind of resource, and the function that reads an entry."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import jmespath

from trainium_core.audit.resource import Resource
from trainium_core.plurals import count
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import Clients
from trainium_runtime.naming import EKS_CLUSTER_TAG, EKS_GROUP_TAG
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


def unexpanded(_client: Any, entry: Any) -> Iterable[Entry]:
    return (entry,)


Reader = Callable[[Entry, Location], Resource | None]
"""Reads an entry of a response. Returns None for an entry to skip, such as a deleted resource."""


@dataclass
class Listing:
    """One kind of resource. Decorates the function that reads an entry of the response.

    Attributes:
        kind: The kind in plain words, in the singular.
        resource_type: The CloudFormation type.
        arn_type: Service and type in the ARNs, as returned by trainium_core.audit.resource.arn_type.
        permission: The IAM action of the call that lists the kind.
        entries: JMESPath of the list in the response. Default: named after the action, such as Volumes[].
        service: boto3's name of the service. Default: the prefix of the action.
        operation: boto3's method. Default: named after the action.
        arguments: Arguments of the call. In strings, `{account}` is replaced by the account ID.
        more_arguments: Arguments of further calls, if one call does not list everything.
        endpoint_region: Region of the endpoint of a global service.
        expand: Function that lists what is in an entry of the call, such as the node groups of a cluster, given the
            client of the service. `read` gets its results. Default: the entry itself.
        measure: Function that adds data that needs more requests; returns None for a resource that is being deleted.
        in_estimates: False if such a resource and its parts cost almost nothing while unused: `trn cost` skips it.
        read: The decorated function.
    """

    kind: str
    resource_type: str
    _: KW_ONLY
    arn_type: str
    permission: str
    entries: str = ""
    service: str = ""
    operation: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    more_arguments: tuple[Mapping[str, Any], ...] = ()
    endpoint_region: str | None = None
    expand: Callable[[Any, Any], Iterable[Entry]] = unexpanded
    measure: Callable[[ClientFactory, Resource], Resource | None] = unmeasured
    in_estimates: bool = True
    read: Reader = field(init=False)

    def __post_init__(self) -> None:
        prefix, _, action = self.permission.partition(":")
        self.service = self.service or prefix
        self.operation = self.operation or re.sub(r"(?<!^)(?=[A-Z])", "_", action).lower()
        self.entries = self.entries or f"{re.sub('^(Describe|List)', '', action)}[]"

    def __call__(self, read: Reader) -> "Listing":
        self.read = read
        return self


class AwsResourceLister:
    """Lists one kind of resource in an account and region.

    Methods raise UnavailableError if a request fails or is denied.

    Attributes:
        kind: The kind in plain words, in the singular.
        resource_type: The CloudFormation type.
        arn_type: Service and type in the ARNs, as returned by the function `arn_type`.
        in_estimates: Whether such a resource can have a relevant cost while unused, or can contain one that has.
    """

    def __init__(self, listing: Listing, location: Location, clients: Clients) -> None:
        self.kind, self.resource_type, self.arn_type = listing.kind, listing.resource_type, listing.arn_type
        self.in_estimates = listing.in_estimates
        self._listing, self._location, self._clients = listing, location, clients

    def resources(self) -> Iterator[Resource]:
        """All resources of the kind, of any owner."""
        with read_errors(self._listing.permission):
            entries = list(self._entries())
            read = (self._listing.read(entry, self._location) for entry in entries)
            service, _, arn_type = self.arn_type.partition(":")
            for resource in (resource for resource in read if resource is not None):
                arn = resource.arn or self._location.arn(service, f"{arn_type}/{resource.name}")
                yield replace(resource, arn=arn)

    def measured(self, resource: Resource) -> Resource | None:
        """The resource with data that needs more requests; None if it is being deleted."""
        return self._listing.measure(self._client, resource)

    def _client(self, service: str) -> Any:
        return self._clients.client(service, self._listing.endpoint_region or self._location.region)

    def _entries(self) -> Iterator[Entry]:
        for arguments in (self._listing.arguments, *self._listing.more_arguments):
            for entry in self._listed({name: self._filled(value) for name, value in arguments.items()}):
                yield from self._listing.expand(self._client(self._listing.service), entry)

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


def entry_tags(entry: Entry) -> dict[str, str]:
    """The tags by key, for a service that returns them as `Tags` with Key and Value."""
    return tag_values(entry.get("Tags"))


def tagged_node_group(tags: Mapping[str, str]) -> str | None:
    """The ID of the managed node group whose name EKS writes into the tags of a group's resources; None without one."""
    cluster, group = tags.get(EKS_CLUSTER_TAG), tags.get(EKS_GROUP_TAG)
    return f"{cluster}/{group}" if cluster and group else None


def gib(size_in_bytes: int) -> str:
    """A size in GiB; in bytes below 1 MiB."""
    if size_in_bytes < 2**20:
        return count(size_in_bytes, "byte")
    size = size_in_bytes / 2**30
    return f"{size:.3g} GiB" if size < 100 else f"{size:,.0f} GiB"

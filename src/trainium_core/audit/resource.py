"""A thing that an account holds, and what it is billed for."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Protocol

from trainium_runtime.naming import CLUSTER_TAG


@dataclass(frozen=True, kw_only=True)
class ChargedItem:
    """So many units of a product of price_products: hours of each hour, or GB-months of each month."""

    product: str
    quantity: Decimal
    instance_type: str = ""


@dataclass(frozen=True, kw_only=True)
class Charge:
    """What a thing costs by being there. `unpriced` names what of it this package has no price of, if there is any.

    `note` is what the amount does not hold: what comes on top by use, or was paid before.
    """

    items: tuple[ChargedItem, ...] = ()
    unpriced: str = ""
    note: str = ""


FREE = Charge()
BY_USE = Charge(note="by use")


@dataclass(frozen=True, kw_only=True)
class Resource:
    """`ids`: every name CloudFormation may know it by. `tags`: None where its listing does not hold them.

    `parents`: ids of what it is part of, such as the VPC. `name` is what its maker called it, or its id.
    """

    name: str
    arn: str
    ids: frozenset[str]
    tags: dict[str, str] | None = None
    parents: frozenset[str] = frozenset()
    state: str = ""
    detail: str = ""
    created: datetime | None = None
    charge: Charge = FREE

    @property
    def cluster(self) -> str | None:
        """The cluster that its own tag names."""
        return None if self.tags is None else self.tags.get(CLUSTER_TAG)


class ResourceLister(Protocol):
    """One kind of thing, looked for in the whole account. Each method raises UnavailableError without an answer."""

    @property
    def kind(self) -> str:
        """What people call one of it."""
        ...

    @property
    def resource_type(self) -> str:
        """CloudFormation's name of it."""
        ...

    @property
    def arn_type(self) -> str:
        """What `arn_type` gives for its ARNs."""
        ...

    @property
    def in_estimates(self) -> bool:
        """Whether one of it can cost more than next to nothing by being there, or is what such a thing is part of."""
        ...

    def resources(self) -> Iterable[Resource]:
        """Everything of the kind, whosever it is."""
        ...

    def measured(self, resource: Resource) -> Resource | None:
        """The same with what takes more questions; None if it turns out to be on its way out."""
        ...


@dataclass(frozen=True, kw_only=True)
class Found:
    """A resource that belongs to the cluster, and each way in which that was found."""

    kind: str
    resource: Resource
    found_by: tuple[str, ...] = field(default=())


def arn_type(arn: str) -> str:
    """Service and type, such as ec2:volume; of ARNs without a type, such as S3's, the service alone."""
    service, tail = _service_and_tail(arn)
    for divider in ("/", ":"):
        kind, found, _ = tail.partition(divider)
        if found and not (divider == "/" and ":" in kind):
            return f"{service}:{kind}"
    return service


def arn_key(arn: str) -> str:
    """The same for every way in which services write the ARN of one thing: some leave out account or region."""
    service, tail = _service_and_tail(arn)
    return f"{service}:{tail.removesuffix(':*')}"


def arn_name(arn: str) -> str:
    """The thing's name or id, without its type."""
    _, tail = _service_and_tail(arn)
    prefix = arn_type(arn).partition(":")[2]
    return (tail.removeprefix(prefix)[1:] if prefix else tail).removesuffix(":*")


def _service_and_tail(arn: str) -> tuple[str, str]:
    parts = arn.split(":", 5)
    return (parts[2], parts[5]) if len(parts) > 5 else ("", arn)

"""A resource of an account, and what it is billed for."""

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from trainium_runtime.naming import CLUSTER_TAG


@dataclass(frozen=True, kw_only=True)
class ChargedItem:
    """A quantity of a product in price_products.toml.

    Attributes:
        product: The name of the product.
        quantity: The number that runs, if the price is per hour; otherwise the units per month.
        instance_type: Empty unless the price depends on it.
    """

    product: str
    quantity: Decimal
    instance_type: str = ""


@dataclass(frozen=True, kw_only=True)
class Charge:
    """The cost of an existing resource.

    Attributes:
        items: The parts with a product in price_products.toml.
        unpriced: The part without a known price, if any.
        note: Costs that are not included: by use, or paid in advance.
    """

    items: tuple[ChargedItem, ...] = ()
    unpriced: str = ""
    note: str = ""


FREE = Charge()
BY_USE = Charge(note="by use")


@dataclass(frozen=True, kw_only=True)
class Resource:
    """One resource.

    Attributes:
        name: Its name, or its ID.
        arn: Its ARN. The lister composes it if the service does not return one.
        ids: Every physical ID that CloudFormation may use for it.
        tags: None if its listing does not contain them.
        parents: IDs of the resources that it is part of, such as its VPC.
        state: The service's state, or empty.
        detail: Its size, type or similar, as text.
        created: Time of creation, or of the last change of an SSM parameter; None if its listing does not contain it.
        charge: Its cost.
    """

    name: str
    arn: str = ""
    ids: frozenset[str]
    tags: dict[str, str] | None = None
    parents: frozenset[str] = frozenset()
    state: str = ""
    detail: str = ""
    created: datetime | None = None
    charge: Charge = FREE

    @property
    def cluster(self) -> str | None:
        """The cluster in its tag."""
        return None if self.tags is None else self.tags.get(CLUSTER_TAG)


@dataclass(frozen=True, kw_only=True)
class Found:
    """A resource of the cluster or of the CDK bootstrap, and each way in which it was found."""

    kind: str
    resource: Resource
    found_by: tuple[str, ...] = field(default=())


def arn_type(arn: str) -> str:
    """Service and type, such as ec2:volume; only the service for ARNs without a type, such as S3's."""
    service, tail = _service_and_tail(arn)
    for divider in ("/", ":"):
        kind, found, _ = tail.partition(divider)
        if found and not (divider == "/" and ":" in kind):
            return f"{service}:{kind}"
    return service


def arn_key(arn: str) -> str:
    """A normalized ARN. Services omit account or region in some ARNs of the same resource."""
    service, tail = _service_and_tail(arn)
    return f"{service}:{tail.removesuffix(':*')}"


def arn_name(arn: str) -> str:
    """The part of an ARN after the type: usually the resource's name or ID."""
    _, tail = _service_and_tail(arn)
    prefix = arn_type(arn).partition(":")[2]
    return (tail.removeprefix(prefix)[1:] if prefix else tail).removesuffix(":*")


def _service_and_tail(arn: str) -> tuple[str, str]:
    parts = arn.split(":", 5)
    return (parts[2], parts[5]) if len(parts) > 5 else ("", arn)

"""An account for audits whose responses a test defines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from trainium_core.audit.resource import FREE, Charge, Resource
from trainium_core.audit.stack_record import AuditedStack
from trainium_core.aws.identity import Identity
from trainium_core.prices.price import Price, PricedItem
from trainium_runtime.errors import UnavailableError

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
CLUSTER = "trn-pilot"
VOLUME = "AWS::EC2::Volume"


def resource(
    name: str,
    *,
    cluster: str | None = None,
    tags: dict[str, str] | None = None,
    parents: tuple[str, ...] = (),
    charge: Charge = FREE,
) -> Resource:
    """A resource with this ID and the ARN of a volume, tagged with `cluster` if it is set."""
    return Resource(
        name=name,
        arn=f"arn:aws:ec2:us-west-2:123456789012:volume/{name}",
        ids=frozenset([name]),
        tags={"trn:cluster": cluster} if cluster else tags,
        parents=frozenset(parents),
        charge=charge,
    )


def stack(
    name: str = "TrnClusterStack",
    *,
    cluster: str | None = CLUSTER,
    made: Mapping[tuple[str, str], str] | None = None,
    deleted: bool = True,
    is_bootstrap: bool = False,
) -> AuditedStack:
    return AuditedStack(
        name=name,
        stack_id=f"arn:aws:cloudformation:us-west-2:123456789012:stack/{name}/1",
        status="DELETE_COMPLETE" if deleted else "CREATE_COMPLETE",
        cluster=cluster,
        created=NOW,
        deleted=NOW if deleted else None,
        made=made or {},
        is_bootstrap=is_bootstrap,
    )


@dataclass
class FakeLister:
    """A lister whose responses a test defines.

    Attributes:
        found: The resources; None if the listing is denied.
        denied: Names of resources that cannot be measured.
    """

    found: Sequence[Resource] | None = ()
    kind: str = "EBS volume"
    resource_type: str = VOLUME
    arn_type: str = "ec2:volume"
    denied: Sequence[str] = ()
    in_estimates: bool = True

    def resources(self) -> Sequence[Resource]:
        if self.found is None:
            raise UnavailableError("not allowed to read: the permission ec2:DescribeVolumes is missing")
        return self.found

    def measured(self, resource: Resource) -> Resource | None:
        if resource.name in self.denied:
            raise UnavailableError("not allowed to read: the permission ec2:Measure is missing")
        return resource


@dataclass
class FakeAuditedAccount:
    """An account whose responses a test defines.

    Attributes:
        lister: The lister of EBS volumes.
        tags: The cluster of each tagged resource, by ARN; None if the call is denied.
        stacks: The stack records; None if the call is denied.
    """

    lister: FakeLister = field(default_factory=FakeLister)
    tags: Mapping[str, str] | None = field(default_factory=dict[str, str])
    stacks: Sequence[AuditedStack] | None = ()

    def identity(self) -> Identity:
        return Identity(account="123456789012", arn="arn:aws:iam::123456789012:user/x")

    def price(self, item: PricedItem) -> Price:
        raise UnavailableError(f"no price of {item.product}")

    def listers(self, account_id: str) -> Sequence[FakeLister]:
        assert account_id == "123456789012"
        return [self.lister]

    def tagged(self) -> Mapping[str, str]:
        if self.tags is None:
            raise UnavailableError("not allowed to read: the permission tag:GetResources is missing")
        return self.tags

    def stack_records(self, names: Sequence[str]) -> Sequence[AuditedStack]:
        assert "TrnClusterStack" in names
        if self.stacks is None:
            raise UnavailableError("not allowed to read: the permission cloudformation:DescribeStacks is missing")
        return self.stacks

    def calls(self) -> Mapping[str, int]:
        return {"ec2:DescribeVolumes": 1}

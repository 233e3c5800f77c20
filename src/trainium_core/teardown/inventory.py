"""Lists what a teardown would delete and retain, for the confirmation."""

from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal

from trainium_core.plan import Plan
from trainium_core.plurals import count
from trainium_core.prices.price import PricedItem, Prices
from trainium_core.prices.quotes import quotes
from trainium_core.stacks.containers import containers
from trainium_core.stacks.description import DescribedResource, StackDescription
from trainium_core.teardown.aws_account import AwsTeardown
from trainium_core.teardown.leftovers import StoredBytes
from trainium_core.teardown.scope import BUCKET, Scope
from trainium_core.teardown.steps import LEFTOVER_KINDS, own_leftovers
from trainium_runtime.errors import UnavailableError

_GIB = 1024**3
_PRODUCTS = {
    BUCKET: "s3-storage",
    "AWS::FSx::FileSystem": "fsx-lustre-storage",
    "AWS::EFS::FileSystem": "efs-storage",
}
_DATA = {BUCKET: "bucket", "AWS::FSx::FileSystem": "file system", "AWS::EFS::FileSystem": "file system"}
_HIDDEN = "AWS::CDK::Metadata"


@dataclass(frozen=True, kw_only=True)
class DeletedItem:
    """An item that will be deleted or stopped.

    Attributes:
        what: Kind of the item.
        name: Name or ID of the item.
        detail: State or content of the item.
    """

    what: str
    name: str
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class RetainedResource:
    """A retained resource.

    Attributes:
        kind: CloudFormation's type of the resource.
        resource_id: Physical ID.
        stored: The amount of stored data, of an FSx file system its capacity; None if unknown, or for other kinds.
        month_usd: Monthly cost of `stored` in US dollars; None if unknown.
    """

    kind: str
    resource_id: str
    stored: StoredBytes | None
    month_usd: Decimal | None


@dataclass(frozen=True, kw_only=True)
class Inventory:
    """What a teardown would delete and retain.

    Attributes:
        to_delete: Items that will be deleted or stopped.
        kept: Resources that are retained.
        not_empty: Resources with content that nothing deletes, so that their stacks cannot be deleted.
        unknown: What could not be read, and why.
    """

    to_delete: tuple[DeletedItem, ...]
    kept: tuple[RetainedResource, ...]
    not_empty: tuple[DescribedResource, ...] = ()
    unknown: tuple[str, ...] = ()


def inventory(account: AwsTeardown, scope: Scope, plan: Plan, *, prices: Prices | None) -> Inventory:
    """List what a teardown deletes and retains.

    Args:
        account: The account.
        scope: The stacks of the cluster.
        plan: The plan, for the region and the user's prices.
        prices: AWS's prices. None: only the prices of the plan and of the snapshot.
    """
    survey = _Survey(account, scope)
    to_delete = tuple(survey.items())
    retained = kept(account, scope, plan, prices=prices)
    return Inventory(
        to_delete=to_delete, kept=retained, not_empty=tuple(survey.not_empty), unknown=tuple(survey.unknown)
    )


def kept(account: AwsTeardown, scope: Scope, plan: Plan, *, prices: Prices | None) -> tuple[RetainedResource, ...]:
    """The existing resources that the stacks retain, or have retained, with their cost."""
    sizes = [(resource, _size(account, resource)) for resource in dict.fromkeys(scope.kept)]
    items = {kind: PricedItem(product=product, region=plan.region) for kind, product in _PRODUCTS.items()}
    wanted = [items[resource.kind] for resource, size in sizes if size is not None and resource.kind in items]
    found = quotes(wanted, own=plan.prices, aws=prices).prices
    usd = {kind: price.usd for kind, item in items.items() if (price := found.get(item)) is not None}
    return tuple(
        RetainedResource(
            kind=resource.kind,
            resource_id=resource.resource_id,
            stored=None if isinstance(size, str) else size,
            month_usd=_month(size, usd.get(resource.kind)),
        )
        for resource, size in sizes
        if size is not None
    )


def _size(account: AwsTeardown, resource: DescribedResource) -> StoredBytes | str | None:
    """The size of a resource; None if it does not exist; text if existence or size is unknown."""
    if resource.kind not in _PRODUCTS:
        return "no size"
    try:
        return account.stored(resource.kind, resource.resource_id)
    except UnavailableError as error:
        return str(error)


def _month(size: StoredBytes | str | None, usd: Decimal | None) -> Decimal | None:
    return size.count * usd / _GIB if isinstance(size, StoredBytes) and usd is not None else None


class _Survey:
    def __init__(self, account: AwsTeardown, scope: Scope) -> None:
        self._account, self._scope = account, scope
        self.not_empty: list[DescribedResource] = []
        self.unknown: list[str] = []

    def items(self) -> Iterator[DeletedItem]:
        yield from self._work()
        yield from self._nodes()
        for stack in self._scope.stacks_to_delete:
            yield from _in_stack(stack)
        yield from self._to_empty_first()
        if self._scope.shared:
            return  # Buckets of earlier stacks, and resources outside every stack, are deleted only if no stack stays.
        yield from self._left_buckets()
        contained = self._scope.contained_ids
        for kind in LEFTOVER_KINDS:
            with self._noting(f"{kind}s"):
                for leftover in own_leftovers(self._account, self._scope, kind, excluding=contained):
                    yield DeletedItem(what=kind, name=leftover.resource_id, detail="outside every stack")

    def _work(self) -> Iterator[DeletedItem]:
        engines = self._scope.engines_with_workloads
        if not engines:
            return
        with self._noting("jobs"):
            for work in self._account.running_workloads(engines=engines, cluster=self._scope.cluster):
                yield DeletedItem(what=work.kind, name=work.work_id.rpartition(":")[2], detail="is stopped")

    def _nodes(self) -> Iterator[DeletedItem]:
        with self._noting("nodes"):
            for group in self._account.node_groups(self._scope.groups):
                if group.instances:
                    detail = ", ".join(f"{number} {state}" for state, number in group.instances.items())
                    yield DeletedItem(what="nodes", name=group.name, detail=detail)

    def _to_empty_first(self) -> Iterator[DeletedItem]:
        for resource in self._scope.to_empty_first:
            what, name, is_empty = containers()[resource.kind].name, resource.resource_id, None
            with self._noting(f"whether the {what} {name} is empty"):
                is_empty = self._account.is_empty(resource.kind, name)
                if is_empty is None:
                    raise UnavailableError(f"`trn` does not read the content of a {what}")
            if is_empty is False:
                self.not_empty.append(resource)
            detail = {True: "empty", False: "not empty: empty it first", None: "deleted only if it is empty"}[is_empty]
            yield DeletedItem(what=what, name=name, detail=detail)

    def _left_buckets(self) -> Iterator[DeletedItem]:
        in_stacks = self._scope.buckets_in_stacks
        for name in dict.fromkeys(name for name in self._scope.buckets if name not in in_stacks):
            with self._noting(f"bucket {name}"):
                if self._scope.may_empty(self._account.bucket_tags(name)):
                    yield DeletedItem(what="bucket", name=name, detail="left by an earlier stack")

    @contextmanager
    def _noting(self, what: str) -> Generator[None]:
        """A context that records an UnavailableError as unknown."""
        try:
            yield
        except UnavailableError as error:
            self.unknown.append(f"{what}: {error}")


def _in_stack(stack: StackDescription) -> Iterator[DeletedItem]:
    """A stack, and the data that is lost with it."""
    kinds = Counter(
        resource.kind
        for resource in stack.resources
        if not (resource.kept or resource.gone or resource.kind == _HIDDEN)
    )
    yield DeletedItem(what="stack", name=stack.name, detail=f"{count(kinds.total(), 'resource')}, {stack.status}")
    if stack.others:
        lost = f"{count(len(stack.others), 'resource')} outside the cluster"
        yield DeletedItem(what="in stack", name=stack.name, detail=lost)
    for kind, what in _DATA.items():
        must_be_empty = [resource.resource_id for resource in stack.resources if resource.must_be_empty]
        for name in (name for name in stack.ids(kind) if name not in must_be_empty):
            yield DeletedItem(what=what, name=name, detail="with everything in it")

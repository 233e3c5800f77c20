"""Runs an audit: lists all resources concurrently, selects those of the cluster, and prices them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from trainium_core.audit.aws_account import AwsAuditedAccount
from trainium_core.audit.listings.listing import AwsResourceLister
from trainium_core.audit.monthly_price import per_month, priced_items
from trainium_core.audit.outcome import Audit, Audited, Group, NotRead
from trainium_core.audit.ownership import ListedResource, Ownership, owned_resources
from trainium_core.audit.resource import Charge, Found, Resource, arn_key, arn_name, arn_type
from trainium_core.audit.stack_record import DELETE_SKIPPED, AuditedStack, AuditedStacks, resource_status
from trainium_core.plan import Plan
from trainium_core.prices.quotes import quotes
from trainium_runtime.errors import UnavailableError

_NOT_DELETED = "DELETE_FAILED"
"""Status of a resource that CloudFormation could not delete."""

_STACK = "AWS::CloudFormation::Stack"
_NO_PRICE = Charge(unpriced="this kind of resource")


def existing_stacks(stacks: Iterable[AuditedStack]) -> Iterator[Found]:
    for stack in stacks:
        if stack.exists:
            resource = Resource(
                name=stack.name,
                arn=stack.stack_id,
                ids=frozenset([stack.stack_id]),
                state=stack.status,
                created=stack.created,
            )
            yield Found(kind="stack", resource=resource, found_by=("the stack exists",))


def only_in_tag_index(
    tagged: Mapping[str, str], cluster: str, stacks: Iterable[AuditedStack], covered: Iterable[AwsResourceLister]
) -> Iterator[Found]:
    """Tagged resources of kinds that have no listing, or whose listing failed.

    A resource that is missing from its listing has been deleted: the tag index lags behind. Resources that a stack
    retained, or failed to delete, are omitted, because only_in_stack_records returns them.
    """
    types = {lister.arn_type for lister in covered} | {"cloudformation:stack"}
    remembered = {
        name for stack in stacks for (_, name), status in stack.made.items() if status in (DELETE_SKIPPED, _NOT_DELETED)
    }
    for arn, owner in tagged.items():
        if owner == cluster and arn_type(arn) not in types and not {arn, arn_name(arn)} & remembered:
            resource = Resource(name=arn_name(arn), arn=arn, ids=frozenset([arn]), charge=_NO_PRICE)
            yield Found(kind=arn_type(arn), resource=resource, found_by=("tag index only: not verified",))


def only_in_stack_records(
    stacks: Iterable[AuditedStack], wanted: str, covered: Iterable[AwsResourceLister]
) -> Iterator[Found]:
    """Resources whose last status in a stack is `wanted`, of kinds that have no listing, or whose listing failed."""
    types = {lister.resource_type for lister in covered} | {_STACK}
    for stack in stacks:
        for (resource_type, name), status in stack.made.items():
            if status == wanted and resource_type not in types:
                resource = Resource(name=name, arn="", ids=frozenset([name]), state=status, charge=_NO_PRICE)
                yield Found(kind=resource_type, resource=resource, found_by=(f"created by stack {stack.name}",))


Progress = Callable[[int, int], None]
"""Called with the number of completed calls, and the number of all calls."""

THREADS = 16
"""Maximum number of concurrent calls. EC2 would throttle many more."""

_TAGS = "the tag index"
_STACKS = "the stacks and the resources they created"


@dataclass(frozen=True, kw_only=True)
class _Answers:
    """What AWS answered.

    Attributes:
        listers: The listers that were called.
        covered: The listers that answered, and those that were skipped.
        seen: All listed resources.
        tagged: The value of the tag trn:cluster of every resource that has it, by ARN.
        stacks: The stacks.
        not_read: The calls that failed.
    """

    listers: Sequence[AwsResourceLister]
    covered: Sequence[AwsResourceLister]
    seen: Sequence[ListedResource]
    tagged: Mapping[str, str]
    stacks: AuditedStacks
    not_read: Sequence[NotRead]


def audit(
    plan: Plan,
    account: AwsAuditedAccount,
    *,
    stack_names: Sequence[str],
    now: datetime,
    on_progress: Progress | None = None,
    only_estimated: bool = False,
) -> Audit:
    """Find every resource in the account that belongs, or may belong, to the plan's cluster.

    Args:
        plan: The plan.
        account: The account.
        stack_names: Names of the cluster's stacks. Other stacks with the cluster's tag count too.
        now: The time of the report.
        on_progress: Called after each call.
        only_estimated: Whether to skip kinds that cost almost nothing while unused.

    Raises:
        UnavailableError: The caller's identity cannot be read, or every call failed.
    """
    identity = account.identity()
    listers = account.listers(identity.account)
    skipped = [lister for lister in listers if only_estimated and not lister.in_estimates]
    included = [lister for lister in listers if lister not in skipped]
    answers = _answers(account, plan.cluster_name, included, skipped, stack_names, on_progress)
    not_read = list(answers.not_read)
    grouped = list(_grouped(answers, plan.cluster_name, stack_names, not_read))
    wanted = priced_items((found.resource for _, found in grouped), plan.region)
    priced = quotes(wanted, own=plan.prices, aws=account)
    return Audit(
        cluster=plan.cluster_name,
        region=plan.region,
        identity=identity,
        time=now,
        stacks=answers.stacks.own,
        resources=tuple(
            Audited(**vars(found), group=group, usd_per_month=per_month(found.resource.charge, priced, plan.region))
            for group, found in grouped
        ),
        not_read=tuple(not_read),
        kinds=tuple(lister.kind for lister in answers.listers),
        calls=account.calls(),
        prices_unavailable=priced.unavailable,
    )


def _answers(
    account: AwsAuditedAccount,
    cluster: str,
    listers: Sequence[AwsResourceLister],
    skipped: Sequence[AwsResourceLister],
    stack_names: Sequence[str],
    on_progress: Progress | None,
) -> _Answers:
    calls: dict[str, Callable[[], Any]] = {lister.kind: partial(_resources, lister) for lister in listers}
    calls[_TAGS] = account.tagged
    calls[_STACKS] = partial(account.stack_records, stack_names)
    reported, failed = _reported(calls, on_progress)
    if not reported:
        error, more = next(iter(failed.values())), len(failed) - 1
        raise UnavailableError(f"{error.reason}, and {more} more calls failed", remedy=error.remedy)
    return _Answers(
        listers=listers,
        covered=[*(each for each in listers if each.kind in reported), *skipped],
        seen=[(each.kind, each.resource_type, found) for each in listers for found in reported.get(each.kind, ())],
        tagged=reported.get(_TAGS, {}),
        stacks=_cluster_stacks(reported.get(_STACKS, ()), cluster, stack_names),
        not_read=[NotRead(what=what, reason=failed[what].reason) for what in sorted(failed)],
    )


def _reported(
    calls: Mapping[str, Callable[[], Any]], on_progress: Progress | None
) -> tuple[dict[str, Any], dict[str, UnavailableError]]:
    """The answers and the errors, by name of the call."""
    reported, failed = dict[str, Any](), dict[str, UnavailableError]()
    with ThreadPoolExecutor(THREADS) as threads:
        futures: dict[Future[Any], str] = {threads.submit(call): what for what, call in calls.items()}
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                try:
                    reported[futures[future]] = future.result()
                except UnavailableError as error:
                    failed[futures[future]] = error
                if on_progress is not None:
                    on_progress(done, len(calls))
        except KeyboardInterrupt:
            threads.shutdown(wait=False, cancel_futures=True)
            raise
    return reported, failed


def _resources(lister: AwsResourceLister) -> list[Resource]:
    return list(lister.resources())


def _cluster_stacks(records: Sequence[AuditedStack], cluster: str, names: Sequence[str]) -> AuditedStacks:
    own = tuple(each for each in records if each.cluster == cluster or (each.cluster is None and each.name in names))
    return AuditedStacks(
        own=own,
        other_names=frozenset(stack.name for stack in records) - {stack.name for stack in own},
        other_ids=frozenset(stack.stack_id for stack in records) - {stack.stack_id for stack in own},
        bootstrap=tuple(stack for stack in records if stack.is_bootstrap),
    )


def _grouped(
    answers: _Answers, cluster: str, stack_names: Sequence[str], not_read: list[NotRead]
) -> Iterator[tuple[Group, Found]]:
    """All reported resources with their group. Adds the cluster's resources that cannot be measured to not_read."""
    evidence = Ownership(
        cluster=cluster,
        tagged={arn_key(arn): value for arn, value in answers.tagged.items()},
        stacks=answers.stacks,
        stack_names=tuple(stack_names),
    )
    own = answers.stacks.own
    yield from _in("left", existing_stacks(own))
    grouped: list[tuple[Group, Found]] = [
        (_group(seen, answers), found) for seen, found in owned_resources(answers.seen, evidence)
    ]
    yield from _measured([*grouped, *_in("shared", _bootstrap_resources(answers))], answers.listers, not_read)
    yield from _in("left", only_in_tag_index(answers.tagged, cluster, own, answers.covered))
    yield from _in("left", only_in_stack_records(own, _NOT_DELETED, answers.covered))
    yield from _in("kept", only_in_stack_records(own, DELETE_SKIPPED, answers.covered))


def _in(group: Group, found: Iterable[Found]) -> Iterator[tuple[Group, Found]]:
    return ((group, resource) for resource in found)


def _bootstrap_resources(answers: _Answers) -> Iterator[Found]:
    for kind, resource_type, resource in answers.seen:
        if stack := answers.stacks.bootstrap_stack(resource_type, resource.ids):
            yield Found(kind=kind, resource=resource, found_by=(f"created by stack {stack.name}",))


def _group(seen: ListedResource, answers: _Answers) -> Group:
    _, resource_type, resource = seen
    maker = answers.stacks.creating_stack(resource_type, resource.ids)
    return "kept" if maker and resource_status(maker, resource_type, resource.ids) == DELETE_SKIPPED else "left"


def _measured(
    grouped: Sequence[tuple[Group, Found]], listers: Sequence[AwsResourceLister], not_read: list[NotRead]
) -> Iterator[tuple[Group, Found]]:
    measure = partial(_measure, {lister.kind: lister for lister in listers})
    with ThreadPoolExecutor(THREADS) as threads:
        answers = list(threads.map(measure, [found for _, found in grouped]))
    for (group, found), answer in zip(grouped, answers, strict=True):
        if isinstance(answer, UnavailableError):
            if group != "shared":  # its content does not belong to the cluster
                not_read.append(NotRead(what=f"{found.kind} {found.resource.name}", reason=str(answer)))
            yield group, found
        elif answer is not None:
            yield group, Found(kind=found.kind, resource=answer, found_by=found.found_by)


def _measure(listers: Mapping[str, AwsResourceLister], found: Found) -> Resource | UnavailableError | None:
    try:
        return listers[found.kind].measured(found.resource)
    except UnavailableError as error:
        return error

"""What belongs to a cluster though no listing shows it: its stacks, and what only the tags or a stack name."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from trainium_core.audit.resource import Charge, Found, Resource, ResourceLister, arn_name, arn_type
from trainium_core.audit.stack_record import KEPT, StackRecord

KEPT_ONLY = (KEPT,)
NOT_DELETED = ("DELETE_FAILED",)
"""Statuses of what stays when a stack has gone."""

_STACK = "AWS::CloudFormation::Stack"
_NO_PRICE = Charge(unpriced="this kind of thing")


def existing_stacks(stacks: Iterable[StackRecord]) -> Iterator[Found]:
    for one in stacks:
        if one.exists:
            resource = Resource(
                name=one.name,
                arn=one.stack_id,
                ids=frozenset([one.stack_id]),
                state=one.status,
                created=one.created,
            )
            yield Found(kind="stack", resource=resource, found_by=("it stands",))


def only_in_the_index(
    tagged: Mapping[str, str], cluster: str, stacks: Iterable[StackRecord], answered: Iterable[ResourceLister]
) -> Iterator[Found]:
    """What no listing had an answer about. What a listing does not show is gone: the index of tags lags behind.

    What a stack kept, or failed to delete, is found by only_remembered.
    """
    covered = {lister.arn_type for lister in answered} | {"cloudformation:stack"}
    remembered = {
        name for stack in stacks for (_, name), status in stack.made.items() if status in (*KEPT_ONLY, *NOT_DELETED)
    }
    for arn, owner in tagged.items():
        if owner == cluster and arn_type(arn) not in covered and not {arn, arn_name(arn)} & remembered:
            resource = Resource(name=arn_name(arn), arn=arn, ids=frozenset([arn]), charge=_NO_PRICE)
            yield Found(kind=arn_type(arn), resource=resource, found_by=("index of tags, and nothing looked at it",))


def only_remembered(
    stacks: Iterable[StackRecord], statuses: Collection[str], answered: Iterable[ResourceLister]
) -> Iterator[Found]:
    """What a stack left in one of the statuses, of kinds that could not be listed."""
    covered = {lister.resource_type for lister in answered} | {_STACK}
    for stack in stacks:
        for (resource_type, name), status in stack.made.items():
            if status in statuses and resource_type not in covered:
                resource = Resource(name=name, arn="", ids=frozenset([name]), state=status, charge=_NO_PRICE)
                yield Found(kind=resource_type, resource=resource, found_by=(f"made by stack {stack.name}",))

"""Common readers of EC2 responses."""

from collections.abc import Callable
from typing import Any

from trainium_core.audit.listings.listing import Entry, Listing, Location, tags_of
from trainium_core.audit.resource import FREE, Charge, Resource


def of_ec2(
    *,
    kind: str,
    resource_type: str,
    arn_type: str,
    permission: str,
    read: Callable[[Entry, Location], Resource | None],
    entries: str = "",
    arguments: dict[str, Any] | None = None,
    in_estimates: bool = True,
) -> Listing:
    """A listing of EC2. entries: JMESPath. Default: the list with the name of the action, such as Volumes[]."""
    return Listing(
        kind=kind,
        resource_type=f"AWS::EC2::{resource_type}",
        arn_type=f"ec2:{arn_type}",
        service="ec2",
        permission=f"ec2:{permission}",
        entries=entries or f"{permission.removeprefix('Describe')}[]",
        read=read,
        arguments=arguments or {},
        in_estimates=in_estimates,
    )


def ec2_resource(
    entry: Entry,
    location: Location,
    *,
    arn_type: str,
    resource_id: str,
    other_ids: tuple[str, ...] = (),
    parents: tuple[str | None, ...] = (),
    state: str = "",
    detail: str = "",
    created: Any = None,
    charge: Charge = FREE,
) -> Resource:
    tags = tags_of(entry)
    return Resource(
        name=resource_id,
        arn=location.arn("ec2", f"{arn_type}/{resource_id}"),
        ids=frozenset([resource_id, *other_ids]),
        tags=tags,
        parents=frozenset(parent for parent in parents if parent),
        state=state,
        detail=detail or tags.get("Name", ""),
        created=created,
        charge=charge,
    )

"""The form of EC2's resources."""

from typing import Any

from trainium_core.audit.listings.listing import Entry, Location, tags_of
from trainium_core.audit.resource import FREE, Charge, Resource


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

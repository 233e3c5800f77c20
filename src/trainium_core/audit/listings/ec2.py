"""Builds a Resource from an entry of an EC2 response."""

from typing import Any

from trainium_core.audit.listings.listing import Entry, entry_tags, tagged_node_group
from trainium_core.audit.resource import FREE, Charge, Resource


def ec2_resource(
    entry: Entry,
    resource_id: str,
    *,
    other_ids: tuple[str, ...] = (),
    parents: tuple[str | None, ...] = (),
    state: str = "",
    detail: str = "",
    created: Any = None,
    charge: Charge = FREE,
) -> Resource:
    """A resource whose ARN follows from its ID. Its default detail is its tag Name."""
    tags = entry_tags(entry)
    return Resource(
        name=resource_id,
        ids=frozenset([resource_id, *other_ids]),
        tags=tags,
        parents=frozenset(parent for parent in (*parents, tagged_node_group(tags)) if parent),
        state=state,
        detail=detail or tags.get("Name", ""),
        created=created,
        charge=charge,
    )

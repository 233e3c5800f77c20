"""Snapshots of a cluster for the decisions of the controller."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from trainium_runtime.controller.snapshot import NO_MEMBERSHIP, Snapshot
from trainium_runtime.node_store import Group, StoredMembership
from trainium_wire.membership import Membership, Notice
from trainium_wire.node_record import NodeRecord, State, StoredRecord

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
TEMPLATE, SUBNET = "lt-1:1", "subnet-1"


def address(instance: str) -> str:
    """The address of an instance such as i-1."""
    return f"10.0.0.{instance.removeprefix('i-')}"


def stored(instance: str, state: State, reason: str = "", *, at: datetime = NOON, **fields: Any) -> StoredRecord:
    record = NodeRecord(instance_id=instance, state=state, reason=reason, time="now", **fields)
    return StoredRecord(record=record, written=at)


def snapshot(
    instances: tuple[str, ...] = ("i-1", "i-2"),
    /,
    *records: StoredRecord,
    leaving: tuple[str, ...] = (),
    tags: Mapping[str, Mapping[str, str]] | None = None,
    desired: int | None = None,
    template: str = TEMPLATE,
    membership: Membership | None = None,
    **fields: Any,
) -> Snapshot:
    """A snapshot with a group of instances.

    Args:
        instances: IDs of the group's instances.
        records: The node records.
        leaving: Unhealthy instances.
        tags: Tags by instance.
        desired: Desired size of the group. Default: the number of instances.
        template: Launch template and version of all instances, and of the group.
        membership: The stored membership. Default: none.
        fields: Further attributes of the snapshot.
    """
    described = {
        instance: {
            "PrivateIpAddress": address(instance),
            "SubnetId": SUBNET,
            "State": {"Name": "running"},
            "Tags": [{"Key": key, "Value": value} for key, value in (tags or {}).get(instance, {}).items()],
        }
        for instance in instances
    }
    group = Group(
        desired=len(instances) if desired is None else desired,
        instances=instances,
        leaving=frozenset(leaving),
        launches=template,
        launched=dict.fromkeys(instances, template),
        total=len(instances),
    )
    values: dict[str, Any] = {
        "now": NOON,
        "group": group,
        "instances": described,
        "records": {record.record.instance_id: record for record in records},
        "membership": StoredMembership(membership=membership, etag="1") if membership else NO_MEMBERSHIP,
    }
    return Snapshot(**{**values, **fields})


def members(*instances: str, notices: tuple[Notice, ...] = ()) -> Membership:
    return Membership.of({instance: address(instance) for instance in instances}, notices)

"""Decides what to do with the nodes: log their records, tag them, replace failed ones, and write the membership."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta

from trainium_runtime.controller.actions import MarkUnhealthy, PrintLine, Step, TagInstances, WriteMembership
from trainium_runtime.controller.snapshot import Snapshot
from trainium_runtime.naming import NODE_REASON_TAG, NODE_STATE_TAG
from trainium_runtime.node_store import Group
from trainium_runtime.pilot_clock import ClockDecision
from trainium_runtime.recovery import Recovery, plan_recovery
from trainium_runtime.tags import tag_values
from trainium_wire.formats import one_line, time_text
from trainium_wire.membership import Membership, Notice, without

PILOT_STOP = "pilot-stop"
"""Kind of the notice that the pilot's clock will stop the nodes."""

_LONGEST_TAG = 256  # characters of a tag's value (EC2 documentation, tag restrictions)
_NOTICES_KEPT = timedelta(hours=1)  # after the time that they announce


def group_recovery(snapshot: Snapshot, group: Group, limit: int) -> Recovery:
    """The decision about the failed nodes of the group."""
    return plan_recovery(failures=snapshot.failures, instances=group.instances, leaving=group.leaving, limit=limit)


def node_steps(
    snapshot: Snapshot, *, replacements: int, clock: ClockDecision | None = None, event_instance: str | None = None
) -> Iterator[Step]:
    """What to do with the nodes of the group, and the notices to all nodes.

    Args:
        replacements: Maximum number of failed nodes that are replaced in any 24 hours.
        clock: The decision of the pilot's clock in this look. Default: none; its notice stays as it is.
        event_instance: The instance whose record caused the look, and is logged so that it outlives the instance.
    """
    group = snapshot.group
    if group is None:
        yield from _membership_steps(snapshot, None, clock)
        return
    recovery = group_recovery(snapshot, group, replacements)
    if logs := tuple(_logs(snapshot, group, event_instance)):
        yield Step(logs)
    for instance in group.instances:
        if recovery.replaces(instance) and instance not in group.leaving:
            why = "; ".join((snapshot.records[instance].record.reason, recovery.sentence(instance)))
            yield Step([MarkUnhealthy(instance=instance, why=why)])
    yield from _membership_steps(snapshot, _members(snapshot, group), clock)
    # Last, because EC2 throttles it and nothing depends on it.
    for tags in _tags(snapshot, group, recovery):
        yield Step([tags])


def _membership_steps(
    snapshot: Snapshot, members: Mapping[str, str] | None, clock: ClockDecision | None
) -> Iterator[Step]:
    """Write the membership if its notices change, or its nodes. Without `members`, its nodes stay as they are."""
    stored = snapshot.membership
    notices = _notices(stored.membership.notices, snapshot, clock)
    new = replace(stored.membership, notices=notices) if members is None else Membership.of(members, notices)
    if new != stored.membership:
        yield Step([WriteMembership(membership=new, replacing=stored)])


def _logs(snapshot: Snapshot, group: Group, event_instance: str | None) -> Iterator[PrintLine]:
    """The record of the event, and the records of instances whose tags show that their event was lost."""
    for instance, stored in snapshot.records.items():
        state = tag_values(snapshot.instances.get(instance, {}).get("Tags")).get(NODE_STATE_TAG)
        is_unlogged = instance in group.instances and instance in snapshot.instances and state != stored.record.state
        if instance == event_instance or is_unlogged:
            outside = {} if instance in group.instances else {"why": "the instance is not in the group"}
            yield PrintLine(fields={"record": json.loads(stored.record.to_json()), **outside})


def _members(snapshot: Snapshot, group: Group) -> dict[str, str] | None:
    """Addresses of the nodes by instance ID; None until all wanted nodes exist and are verified or draining.

    The addresses come from EC2 and not from the records: a node could forge the address in its record, and all other
    nodes use the addresses in commands.
    """
    addresses = {
        instance: snapshot.instances.get(instance, {}).get("PrivateIpAddress")
        for instance in group.instances
        if instance in snapshot.records
        and snapshot.records[instance].record.state in ("verified", "draining")
        and instance not in group.leaving
    }
    complete = bool(addresses) and all(addresses.values()) and len(addresses) == len(group.instances) == group.desired
    return {instance: str(address) for instance, address in addresses.items()} if complete else None


def _notices(current: tuple[Notice, ...], snapshot: Snapshot, clock: ClockDecision | None) -> tuple[Notice, ...]:
    """The notices, without those whose time is more than _NOTICES_KEPT ago."""
    notices = {notice.kind: notice for notice in _with_stop(current, snapshot, clock)}
    oldest = time_text(snapshot.now - _NOTICES_KEPT)
    return tuple(notice for _, notice in sorted(notices.items()) if notice.at >= oldest)


def _with_stop(current: tuple[Notice, ...], snapshot: Snapshot, clock: ClockDecision | None) -> tuple[Notice, ...]:
    """The notices with that of the clock, or without it if the clock will not stop the nodes soon."""
    if clock is None or not clock.nodes:
        return current
    if clock.notice:
        stop = Notice.of(PILOT_STOP, clock.notice.at, clock.notice.reason)
        return (*without(current, PILOT_STOP), stop)
    is_unknown = snapshot.pilot is None or snapshot.pilot.memory is None
    return current if is_unknown else without(current, PILOT_STOP)


def _tags(snapshot: Snapshot, group: Group, recovery: Recovery) -> Iterator[TagInstances]:
    by_tags: dict[tuple[str, str], list[str]] = {}
    for instance in group.instances:
        if instance not in snapshot.records or instance not in snapshot.instances:
            continue
        record = snapshot.records[instance].record
        sentence = "; ".join(part for part in (record.reason, recovery.sentence(instance)) if part)
        reason = one_line(sentence if record.state == "failed" else record.reason, _LONGEST_TAG)
        tags = {NODE_STATE_TAG: record.state, NODE_REASON_TAG: reason}
        if not tags.items() <= tag_values(snapshot.instances[instance].get("Tags")).items():
            by_tags.setdefault((record.state, reason), []).append(instance)
    for (state, reason), instances in by_tags.items():
        yield TagInstances(instances=instances, tags={NODE_STATE_TAG: state, NODE_REASON_TAG: reason})

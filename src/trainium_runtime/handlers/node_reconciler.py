"""Reconciles the nodes of one Auto Scaling group: logs their records, tags the instances, replaces failed nodes, and
writes the membership.

Invoked for every record, for every terminated instance of the group, before the end of a Capacity Block, by the pilot's
clock, and by the fleet gate. Events can be late, duplicated and out of order, so each run reconciles the whole state.
The only data used from events are notices, and the key of the record to log.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from trainium_runtime.naming import NODE_REASON_TAG, NODE_STATE_TAG
from trainium_runtime.node_store import Group, NodeStore, StoredMembership, describe_group, describe_instances
from trainium_runtime.recovery import Recovery, plan_recovery
from trainium_runtime.tags import tag_values
from trainium_wire.formats import one_line, time_text
from trainium_wire.membership import Membership, Notice
from trainium_wire.node_record import StoredRecord, failures

from .capacity_block_end import capacity_block_notice
from .log import log
from .pilot_stop import updated_notices

_LONGEST_TAG = 256  # characters of a tag's value (EC2 documentation, tag restrictions)
_TAGGED_AT_ONCE = 200  # instances; EC2 accepts up to 1,000 resources (API reference, CreateTags)
_NOTICES_KEPT = timedelta(hours=1)  # after the time that they announce
_ATTEMPTS = 5  # if another invocation changes the membership at the same time


def handle(event: dict[str, Any], context: object) -> None:  # noqa: ARG001
    """Reconcile the group that the environment variables name. After an error, Lambda retries twice.

    Raises:
        NoGroupError: The group does not exist.
        ClientError: AWS refused a request that reads the group, its instances, the records or the membership.
        BotoCoreError: AWS was not reached for such a request.
        ExceptionGroup: The failures of the steps that act on the state.
        RuntimeError: In each attempt, another invocation changed the membership first.
    """
    environment_reconciler().reconcile(event, now=datetime.now(UTC))


@cache
def environment_reconciler() -> "NodeReconciler":
    """The reconciler that all invocations in an execution environment share: it reads only changed records."""
    import boto3

    return NodeReconciler(
        group_name=os.environ["GROUP"],
        limit=int(os.environ["REPLACEMENTS"]),
        store=NodeStore(boto3.client("s3"), os.environ["RECORDS_BUCKET"], os.environ["RECORDS_PREFIX"]),
        autoscaling=boto3.client("autoscaling"),
        ec2=boto3.client("ec2"),
    )


class NodeReconciler:
    """Reconciles a group with the records of its nodes.

    Args:
        limit: Maximum number of failed nodes that are replaced in any 24 hours.
    """

    def __init__(self, *, group_name: str, limit: int, store: NodeStore, autoscaling: Any, ec2: Any) -> None:
        self._group_name, self._limit, self._store = group_name, limit, store
        self._autoscaling, self._ec2 = autoscaling, ec2

    def reconcile(self, event: Mapping[str, Any], *, now: datetime) -> None:
        for attempt in range(_ATTEMPTS):
            if self._reconcile_once(event, now, first=attempt == 0):
                return
        raise RuntimeError(f"in {_ATTEMPTS} attempts, another invocation changed the membership first")

    def _reconcile_once(self, event: Mapping[str, Any], now: datetime, *, first: bool) -> bool:
        """Run every step once.

        Returns:
            False if another invocation wrote the membership first, possibly from a newer state.
        """
        # Read before the group, so that the written membership is never based on an older state.
        stored = self._store.membership()
        group = describe_group(self._autoscaling, self._group_name)
        records = self._store.records()
        described = describe_instances(self._ec2, self._group_name)
        instances = {instance: described[instance] for instance in group.instances if instance in described}
        if first:
            self._log(event, group, instances, records)
        recovery = plan_recovery(
            failures=failures(records), instances=group.instances, leaving=group.leaving, limit=self._limit
        )
        membership_written = True
        errors: list[Exception] = []
        # A failed step does not prevent the others.
        for step in (
            lambda: self._replace(group, recovery, records),
            lambda: self._update_membership(_members(group, instances, records), stored, instances, event, now),
            # Last, because EC2 throttles it and nothing depends on it.
            lambda: self._tag(instances, records, recovery),
        ):
            try:
                step()
            except _MembershipChangedError:
                membership_written = False
            except Exception as error:
                errors.append(error)
        if errors:
            raise ExceptionGroup("some steps failed", errors)
        return membership_written

    def _log(
        self, event: Mapping[str, Any], group: Group, instances: Mapping[str, Any], records: Mapping[str, StoredRecord]
    ) -> None:
        """Log the record of the event, so that it outlives the instance.

        Also log the records of instances whose tags show that their event was lost.
        """
        event_instance: str | None = None
        detail = event.get("detail")
        s3_object = detail.get("object") if isinstance(detail, dict) else None
        if isinstance(s3_object, dict):
            event_instance = self._store.instance_of(str(s3_object.get("key")))
            if event_instance is None or event_instance not in records:
                log(ignored=str(s3_object.get("key")), why="not a record, or deleted since")
        for instance, stored in records.items():
            state = tag_values(instances.get(instance, {}).get("Tags")).get(NODE_STATE_TAG)
            not_logged = instance in instances and state != stored.record.state
            if instance == event_instance or not_logged:
                outside = {} if instance in group.instances else {"why": "the instance is not in the group"}
                log(record=json.loads(stored.record.to_json()), **outside)

    def _replace(self, group: Group, recovery: Recovery, records: Mapping[str, StoredRecord]) -> None:
        from botocore.exceptions import ClientError

        for instance in group.instances:
            if not recovery.replaces(instance) or instance in group.leaving:
                continue
            log(replaced=instance, how=recovery.sentence(instance), reason=records[instance].record.reason)
            try:
                self._autoscaling.set_instance_health(
                    InstanceId=instance, HealthStatus="Unhealthy", ShouldRespectGracePeriod=False
                )
            except ClientError as error:
                if error.response["Error"]["Code"] != "ValidationError":  # it has left the group since
                    raise
                log(ignored=instance, why=str(error))

    def _tag(self, instances: Mapping[str, Any], records: Mapping[str, StoredRecord], recovery: Recovery) -> None:
        by_tags: dict[tuple[str, str], list[str]] = {}
        for instance, described in instances.items():
            if instance not in records:
                continue
            record = records[instance].record
            sentence = "; ".join(part for part in (record.reason, recovery.sentence(instance)) if part)
            reason = one_line(sentence if record.state == "failed" else record.reason, _LONGEST_TAG)
            tags_now = {NODE_STATE_TAG: record.state, NODE_REASON_TAG: reason}
            if not tags_now.items() <= tag_values(described.get("Tags")).items():
                by_tags.setdefault((record.state, reason), []).append(instance)
        for (state, reason), tagged in by_tags.items():
            tags = [{"Key": NODE_STATE_TAG, "Value": state}, {"Key": NODE_REASON_TAG, "Value": reason}]
            for start in range(0, len(tagged), _TAGGED_AT_ONCE):
                self._create_tags(tagged[start : start + _TAGGED_AT_ONCE], tags)

    def _create_tags(self, instances: list[str], tags: list[dict[str, str]]) -> None:
        from botocore.exceptions import ClientError

        try:
            self._ec2.create_tags(Resources=instances, Tags=tags)
        except ClientError as error:
            if error.response["Error"]["Code"] != "InvalidInstanceID.NotFound":
                raise
            # An instance that EC2 no longer lists, or does not list yet, must not prevent the tagging of the others.
            for instance in instances if len(instances) > 1 else ():
                self._create_tags([instance], tags)

    def _update_membership(
        self,
        members: Mapping[str, str] | None,
        stored: StoredMembership,
        instances: Mapping[str, Any],
        event: Mapping[str, Any],
        now: datetime,
    ) -> None:
        """Write the membership if it changed.

        Args:
            members: Addresses of the members by instance ID. None: the members of the stored membership.
        """
        of_block = capacity_block_notice(event, {instance["InstanceType"] for instance in instances.values()})
        notices = _notices(updated_notices(stored.membership.notices, event), of_block, now)
        membership = replace(stored.membership, notices=notices) if members is None else Membership.of(members, notices)
        if membership == stored.membership:
            return
        if not self._store.write_membership(membership, replacing=stored):
            raise _MembershipChangedError
        log(membership=json.loads(membership.to_json()))


class _MembershipChangedError(Exception):
    """Another invocation has written the membership."""


def _members(group: Group, instances: Mapping[str, Any], records: Mapping[str, StoredRecord]) -> dict[str, str] | None:
    """Addresses of the nodes by instance ID; None until all wanted nodes exist and are proven or draining.

    The addresses come from EC2 and not from the records: a node could forge the address in its record, and all other
    nodes use the addresses in commands.
    """
    addresses = {
        instance: instances.get(instance, {}).get("PrivateIpAddress")
        for instance in group.instances
        if instance in records
        and records[instance].record.state in ("proven", "draining")
        and instance not in group.leaving
    }
    complete = bool(addresses) and all(addresses.values()) and len(addresses) == len(group.instances) == group.desired
    return addresses if complete else None


def _notices(current: tuple[Notice, ...], new: Notice | None, now: datetime) -> tuple[Notice, ...]:
    """The newest notice of each kind, without those whose time is more than _NOTICES_KEPT ago."""
    by_kind = {notice.kind: notice for notice in (*current, *([new] if new else ()))}
    oldest = time_text(now - _NOTICES_KEPT)
    return tuple(notice for _, notice in sorted(by_kind.items()) if notice.at >= oldest)

"""Reads the snapshot."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Any

from trainium_runtime.aws_capacity_block import read_capacity_block
from trainium_runtime.controller.settings import ControllerSettings, PilotOptions
from trainium_runtime.controller.snapshot import PilotSnapshot, Snapshot, StackSnapshot
from trainium_runtime.log import log
from trainium_runtime.naming import IDLE_NOTICE_TAG, NOTIFIED_TAG, SPENT_TAG, STOPPED_TAG
from trainium_runtime.node_store import Group, NodeStore, describe_instances, find_group
from trainium_runtime.pilot_clock import Memory, SpentBudget, Stopped
from trainium_runtime.tags import tag_values
from trainium_runtime.usage_store import read_last_job, read_reports, read_usage
from trainium_wire.formats import one_line
from trainium_wire.keys import RECORDS_PREFIX
from trainium_wire.node_record import StoredRecord
from trainium_wire.usage import NodeUsage

ClientFactory = Callable[[str], Any]
"""Makes the client of a service."""


@cache
def environment_store(bucket: str) -> NodeStore:
    """The store that all invocations in an execution environment share: it reads only changed records."""
    import boto3

    return NodeStore(boto3.client("s3"), bucket, RECORDS_PREFIX)


class Reader:
    """Reads snapshots of one cluster."""

    def __init__(self, settings: ControllerSettings, client: ClientFactory, store: NodeStore) -> None:
        self._settings, self._client, self._store = settings, client, store
        self._consoles = Consoles(client)

    def snapshot(self, now: datetime, *, pilot: bool = False, deploying: bool = False) -> Snapshot:
        """Read a snapshot.

        Args:
            pilot: Whether the pilot is looked at. Not for an event about a node, of which there can be thousands.
            deploying: Whether a deployment waits for nodes. It also reads the stack, launches and consoles, and
                not the usage.

        Raises:
            ClientError: AWS refused a request.
            BotoCoreError: AWS was not reached.
        """
        name, membership = self._settings.group, self._store.membership()
        if name is None:
            return self._with_pilot(Snapshot(now=now, membership=membership), pilot=pilot, deploying=deploying)
        autoscaling = self._client("autoscaling")
        group = find_group(autoscaling, name)
        if group is None:
            return self._with_pilot(Snapshot(now=now), pilot=pilot, deploying=deploying)
        records = self._store.records()
        activities: Sequence[Mapping[str, Any]] = ()
        consoles: Mapping[str, str] = {}
        if deploying:
            activities = autoscaling.describe_scaling_activities(AutoScalingGroupName=name)["Activities"]
            silent = [instance for instance in group.instances if instance not in records]
            consoles = self._consoles.failures(silent, now=now.timestamp())
        snapshot = Snapshot(
            now=now,
            group=group,
            instances=describe_instances(self._client("ec2"), name),
            records=records,
            membership=membership,
            activities=activities,
            consoles=consoles,
        )
        return self._with_pilot(snapshot, pilot=pilot, deploying=deploying)

    def reports(self, since: datetime) -> tuple[Mapping[str, NodeUsage], Mapping[str, StoredRecord]]:
        """The usage reports and the records of the nodes that should run, and other reports stored after a time.

        A node that failed may be gone before its last report is read.

        Raises:
            ClientError: AWS refused a request.
            BotoCoreError: AWS was not reached.
        """
        name = self._settings.group
        group = find_group(self._client("autoscaling"), name) if name else None
        staying = {*group.instances} - group.leaving if group else set[str]()
        records = {instance: stored for instance, stored in self._store.records().items() if instance in staying}
        bucket = self._settings.records_bucket
        return read_reports(self._client("s3"), bucket, staying, or_stored_after=since), records

    def _with_pilot(self, snapshot: Snapshot, *, pilot: bool, deploying: bool) -> Snapshot:
        settings = self._settings.pilot if pilot else None
        if not (settings or deploying):
            return snapshot
        stack = self._stack()
        state = self._pilot(settings, snapshot, stack, deploying=deploying) if settings else None
        return replace(snapshot, stack=stack, pilot=state)

    def _stack(self) -> StackSnapshot:
        (described,) = self._client("cloudformation").describe_stacks(StackName=self._settings.stack_id)["Stacks"]
        return StackSnapshot(
            status=described["StackStatus"],
            created=described["CreationTime"],
            updated=described.get("LastUpdatedTime"),
            reason=described.get("StackStatusReason", ""),
        )

    def _pilot(
        self, settings: PilotOptions, snapshot: Snapshot, stack: StackSnapshot, *, deploying: bool
    ) -> PilotSnapshot:
        errors: list[Exception] = []
        memory, idle_since = None, None
        try:
            memory = self._memory(settings.topic)
        except Exception as error:  # nodes stop at the end even if it is unknown what was stored
            errors.append(error)
        ends = settings.terms.ends
        ended = ends is not None and ends.at is not None and ends.at <= snapshot.now
        block = None
        # An end at a set time does not depend on EC2. A duration counts from the start of the block.
        if settings.capacity_block and not ended:
            block = read_capacity_block(self._client("ec2"), settings.capacity_block)
        try:
            if settings.terms.idle and stack.settled and not deploying:
                idle_since = self._idle_since(snapshot.group, stack, snapshot.now)
        except Exception as error:  # nodes stop at the end even if their usage is unknown
            errors.append(error)
        return PilotSnapshot(memory=memory, block=block, idle_since=idle_since, errors=errors)

    def _memory(self, topic: str) -> Memory:
        tags = tag_values(self._client("sns").list_tags_for_resource(ResourceArn=topic)["Tags"])
        return Memory(
            notified=tags.get(NOTIFIED_TAG),
            stopped=Stopped.from_text(tags[STOPPED_TAG]) if STOPPED_TAG in tags else None,
            spent=SpentBudget.from_text(tags[SPENT_TAG]) if SPENT_TAG in tags else None,
            idle=datetime.fromisoformat(tags[IDLE_NOTICE_TAG]) if IDLE_NOTICE_TAG in tags else None,
        )

    def _idle_since(self, group: Group | None, stack: StackSnapshot, now: datetime) -> datetime | None:
        if group is None or not group.instances or not len(group.instances) == group.total == group.desired:
            return None
        s3, bucket = self._client("s3"), self._settings.records_bucket
        usage = read_usage(s3, bucket, group.instances, read_last_job(s3, bucket), now=now)
        log(usage=usage.state, why=usage.why)
        # A deployment starts the idle time again, because its nodes will be used soon.
        return usage.idle_since and max(usage.idle_since, stack.updated or stack.created)


_FAILED = re.compile(r"trn-node FAILED: *([^\r\n]+)")
_LONGEST_ERROR = 300  # characters
_CONSOLES_PER_LOOK = 5  # EC2 throttles the request strictly, and the errors of a few nodes are enough
_CONSOLE_INTERVAL_S = 60.0


class Consoles:
    """The consoles of nodes without a record: a few in each look, each at most once a minute."""

    def __init__(self, client: ClientFactory) -> None:
        self._client = client
        self._failures: dict[str, str] = {}
        self._last_request: dict[str, float] = {}

    def failures(self, silent: Sequence[str], *, now: float) -> dict[str, str]:
        """The last error of each node whose console has one, by instance ID.

        Errors of AWS are logged and not raised, because the records are the main source.

        Args:
            silent: Instances without a record.
            now: Seconds since any fixed time.
        """
        due = [
            i
            for i in silent
            if i not in self._failures and now - self._last_request.get(i, -_CONSOLE_INTERVAL_S) >= _CONSOLE_INTERVAL_S
        ]
        for instance in sorted(due, key=lambda i: self._last_request.get(i, 0.0))[:_CONSOLES_PER_LOOK]:
            self._last_request[instance] = now
            if failure := self._fetch(instance):
                self._failures[instance] = failure
        return {instance: self._failures[instance] for instance in silent if instance in self._failures}

    def _fetch(self, instance: str) -> str | None:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            # Without Latest, EC2 returns output that may be minutes old. Nitro instances support Latest.
            response = self._client("ec2").get_console_output(InstanceId=instance, Latest=True)
            text = str(response.get("Output") or "")  # botocore has decoded it
        except (BotoCoreError, ClientError) as error:
            log(f"console of {instance}: {error}")
            return None
        failures = _FAILED.findall(text)
        return one_line(failures[-1], _LONGEST_ERROR) if failures else None
